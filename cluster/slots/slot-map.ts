/**
 * slot-map - which primary of a Redis Cluster holds which shard, as its nodes report
 *
 * Guarantee: if two nodes claim a slot, the one with the higher epoch has it, as among themselves (Redis Cluster
 * specification, "configuration epoch"), so the answer of a disconnected primary moves nothing back.
 */
import { SHARDS } from '../id.ts'
import { CONF_KEY, shardTag } from '../keyspace.ts'

/** Slots of a cluster. */
const SLOTS = 16_384

/** A node as `CLUSTER NODES` shows it. */
export interface ClusterNodeLine {
  readonly id: string
  /** `host:port`; an IPv6 host has no brackets. */
  readonly address: string
  readonly isPrimary: boolean
  /** Others agree that it does not answer. */
  readonly hasFailed: boolean
  /** For a replica the id of its primary; '' for a primary. */
  readonly primaryId: string
  readonly epoch: number
  /** First and last of each range. */
  readonly ranges: readonly (readonly [number, number])[]
}

/**
 * Slot of a key (CRC16/XMODEM of its hash tag). The key must have a tag that is not empty, which all our keys have.
 */
export function computeSlot(key: string): number {
  const tag = key.slice(key.indexOf('{') + 1, key.indexOf('}'))
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff
  }
  return crc % SLOTS
}

/** The slot of each shard. */
export const SHARD_SLOTS: readonly number[] = Array.from({ length: SHARDS }, (_, shard) =>
  computeSlot(`${shardTag(shard)}:`),
)
/** The slot of keys outside any shard. */
export const COMMON_SLOT = computeSlot(CONF_KEY)
const SLOTS_OF_INTEREST = [...SHARD_SLOTS, COMMON_SLOT]

/** Reads the answer to `CLUSTER NODES` of the node at `asked`, which may not know its own host. */
export function parseNodes(text: string, asked: string): ClusterNodeLine[] {
  return text.split('\n').flatMap((line) => {
    const [id, place = '', flags = '', primary = '-', , , epoch = '0', , ...slots] = line.trim().split(' ')
    const [hostPort = ''] = place.split(/[@,]/)
    if (id === undefined || id === '' || hostPort === '' || /noaddr|handshake/.test(flags)) return []
    const ranges = slots
      .filter((slot) => !slot.startsWith('['))
      .map((slot) => slot.split('-').map(Number))
      .map(([first = 0, last = first]): [number, number] => [first, last])
    return {
      id,
      address: addressFrom(hostPort, asked),
      isPrimary: flags.split(',').includes('master'),
      hasFailed: flags.split(',').includes('fail'),
      primaryId: primary === '-' ? '' : primary,
      epoch: Number(epoch),
      ranges,
    }
  })
}

/** Whether a node has a slot, according to this line. */
export function hasSlot({ ranges }: ClusterNodeLine, slot: number): boolean {
  return ranges.some(([first, last]) => slot >= first && slot <= last)
}

/** An address in a node's answer; without a host it has that of the node that was asked. */
export function addressFrom(named: string, asked: string): string {
  return /^:\d+$/.test(named) ? asked.slice(0, asked.lastIndexOf(':')) + named : named
}

/** `host:port` of an address. */
export function hostPortOf({ hostname, port }: URL): string {
  return `${hostname.replace(/^\[|\]$/g, '')}:${port || '6379'}`
}

/** The address of a node: scheme, user and password of `form`, host and port of `place`. */
export function withPlace(form: URL, place: string): string {
  const url = new URL(form)
  const colon = place.lastIndexOf(':')
  const host = place.slice(0, colon)
  url.hostname = host.includes(':') ? `[${host}]` : host
  url.port = place.slice(colon + 1)
  return url.href
}

interface Claim {
  readonly address: string
  readonly epoch: number
}

export class SlotMap {
  private readonly claims = new Map<number, Claim>()
  private known: ReadonlySet<string> = new Set()
  /** The last answer of each node, with the nodes that it knows. */
  private readonly words = new Map<string, ReadonlySet<string>>()

  /**
   * Applies the answer of the node at `speaker`. Returns whether a slot that matters has another primary than before.
   */
  take(nodes: readonly ClusterNodeLine[], speaker: string): boolean {
    this.known = new Set(nodes.map(({ address }) => address))
    this.words.set(speaker, this.known)
    let hasChanged = false
    for (const node of nodes) {
      const { address, epoch, isPrimary } = node
      if (!isPrimary) continue
      for (const slot of SLOTS_OF_INTEREST) {
        if (!hasSlot(node, slot)) continue
        const before = this.claims.get(slot)
        if (before !== undefined && before.epoch > epoch && this.isThere(before.address)) continue
        if (before?.address !== address) hasChanged = true
        this.claims.set(slot, { address, epoch })
      }
    }
    return hasChanged
  }

  /**
   * Whether a node still belongs to the cluster, according to the answering node or to a node that it knows, because a
   * node that was disconnected for long may not know.
   */
  private isThere(address: string): boolean {
    if (this.known.has(address)) return true
    return [...this.known].some((other) => this.words.get(other)?.has(address) === true)
  }

  /** Every node, replicas too, as it was named last. */
  get addresses(): ReadonlySet<string> {
    return this.known
  }

  /** The primary that holds a slot; null while no node has claimed it. */
  addressOf(slot: number): string | null {
    return this.claims.get(slot)?.address ?? null
  }

  /** The primary that holds a shard; null while no node has claimed it. */
  ofShard(shard: number): string | null {
    return this.addressOf(SHARD_SLOTS[shard] ?? 0)
  }

  /** Addresses of the primaries that hold slots of shards. */
  get primaries(): ReadonlySet<string> {
    return new Set([...this.claims.values()].map(({ address }) => address))
  }

  /** Whether every shard has a primary. */
  get isWhole(): boolean {
    return SLOTS_OF_INTEREST.every((slot) => this.claims.has(slot))
  }

  /** The shards that a primary holds. */
  shardsOf(address: string): number[] {
    return SHARD_SLOTS.flatMap((slot, shard) => (this.addressOf(slot) === address ? [shard] : []))
  }
}
