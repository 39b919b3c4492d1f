/**
 * cluster-nodes - the primaries of a Redis Cluster as they come and go, and the map of who holds what
 *
 * The map is read from one node after the other every two seconds; at once and from all, four times a second, while
 * something is elsewhere than was thought or a primary does not answer. Where no primary answers, the seeds and every
 * node that was ever named are asked over connections of their own.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Durability } from '../embedded/binary.ts'
import type { Sending, StoreAnswer } from '../redis/link.ts'
import { StoreRefused } from '../redis/settings.ts'
import { PrimaryNode } from './primary-node.ts'
import { addressFrom, COMMON_SLOT, hostPortOf, parseNodes, SlotMap, withPlace } from './slot-map.ts'

const TICK_MS = 250
const LOAD_MS = 2_000
const ASK_MS_MAX = 1_000
/** All primaries are waited for; one that is away longer than this is waited for by its shards alone. */
const OPEN_MS_MAX = 10_000
const OPEN_STEP_MS = 50
/** A node that holds nothing any more is let go: what is under way there has ended. */
const KEPT_MS = 10_000
/** Nodes that send one command on. */
const HOPS_MAX = 4

export interface ClusterNodesOptions {
  /** Addresses (`redis://`, `rediss://`) of some nodes. User and password of the first go for all. */
  readonly seeds: readonly string[]
  readonly durability: Durability
  /** The primary of what belongs to no shard can be asked, at first, after a reconnect, or it is another one. */
  onUp?(): void
  /** It cannot be asked any more. */
  onDown?(): void
  /** A primary can be asked (again), or holds other shards. */
  onCame?(): void
  /** A node breaks the durability level: it is not used. */
  onRefused?(error: Error): void
  /** Nodes or shards are elsewhere. */
  arranged(): void
  /** What was published in the slot of a shard. */
  heard(channel: string, message: Buffer): void
}

export class ClusterNodes {
  readonly map = new SlotMap()
  /** Primaries by `host:port`. */
  readonly all = new Map<string, PrimaryNode>()
  private readonly options: ClusterNodesOptions
  private readonly form: URL
  private readonly places: Set<string>
  private readonly idleSinceMs = new Map<PrimaryNode, number>()
  private readonly timer: NodeJS.Timeout
  private common: PrimaryNode | null = null
  private refused: Error | null = null
  private isHurried = true
  private isLoading = false
  private isClosed = false
  private loadedAtMs = Number.NEGATIVE_INFINITY
  private turn = 0

  constructor(options: ClusterNodesOptions) {
    this.options = options
    this.form = new URL(options.seeds[0] ?? '')
    this.places = new Set(options.seeds.map((seed) => hostPortOf(new URL(seed))))
    this.timer = setInterval(() => void this.tick(), TICK_MS)
    this.timer.unref()
  }

  /** Resolves when all primaries can be asked, or in ten seconds when that of what belongs to no shard can be. */
  async ready(): Promise<void> {
    const endMs = performance.now() + OPEN_MS_MAX
    await this.load()
    while (!(this.map.isWhole && [...this.all.values()].every(({ isUp }) => isUp))) {
      if (this.refused !== null) throw this.refused
      if (performance.now() > endMs) break
      await pause(OPEN_STEP_MS)
    }
    if (this.at(COMMON_SLOT) === null) throw new Error('The cluster does not answer: no node is known to be its own')
  }

  /** The primary of a slot that can be asked now; null while there is none. */
  at(slot: number): PrimaryNode | null {
    const node = this.named(slot)
    return node?.isUp === true ? node : null
  }

  /** The primary of a slot, whether it can be asked or not. */
  named(slot: number): PrimaryNode | null {
    return this.all.get(this.map.addressOf(slot) ?? '') ?? null
  }

  /** Something is elsewhere than was thought: the map is read at the next tick. */
  hurry(): void {
    this.isHurried = true
  }

  close(): void {
    this.isClosed = true
    clearInterval(this.timer)
    for (const node of [...this.all.values(), ...this.idleSinceMs.keys()]) node.close()
  }

  private async tick(): Promise<void> {
    const atMs = performance.now()
    for (const [node, sinceMs] of this.idleSinceMs) {
      if (atMs - sinceMs < KEPT_MS) continue
      this.idleSinceMs.delete(node)
      node.close()
    }
    const isAway = !this.map.isWhole || [...this.all.values()].some(({ isUp }) => !isUp)
    if (this.isHurried || isAway || atMs - this.loadedAtMs >= LOAD_MS) await this.load()
  }

  /** Reads the map: from all while something is wrong, else from one after the other. */
  private async load(): Promise<void> {
    if (this.isLoading || this.isClosed) return
    this.isLoading = true
    const up = [...this.all.values()].filter(({ isUp }) => isUp)
    this.turn += 1
    const isCalm = !this.isHurried && up.length === this.all.size && up.length > 0
    const asked = isCalm ? up.slice(this.turn % up.length).slice(0, 1) : up
    this.isHurried = false
    this.loadedAtMs = performance.now()
    const asks = asked.map(async ({ name, store }) => {
      const text = await store.views.call('CLUSTER', 'NODES').catch(() => null)
      this.took(text, name)
    })
    if (up.length === 0) asks.push(...[...this.places].map((place) => this.askApart(place)))
    await Promise.race([Promise.all(asks), pause(ASK_MS_MAX, undefined, { ref: false })])
    this.isLoading = false
  }

  /** Asks a node over a connection of its own. */
  private async askApart(place: string): Promise<void> {
    const client = new Redis(withPlace(this.form, place), {
      connectionName: 'map',
      lazyConnect: true,
      retryStrategy: () => null,
      connectTimeout: ASK_MS_MAX,
      commandTimeout: ASK_MS_MAX,
      maxRetriesPerRequest: 0,
    })
    client.on('error', () => undefined)
    const text = await client
      .connect()
      .then(() => client.call('CLUSTER', 'NODES'))
      .catch(() => null)
    client.disconnect()
    this.took(text, place)
  }

  /** Takes in what one node says of all, and has a store for each primary of the map. */
  private took(text: unknown, asked: string): void {
    if (typeof text !== 'string' || this.isClosed) return
    const lines = parseNodes(text, asked)
    for (const { address } of lines) this.places.add(address)
    const hasMoved = this.map.take(lines)
    const { primaries } = this.map
    let hasChanged = hasMoved
    for (const name of primaries) {
      if (this.all.has(name)) continue
      hasChanged = true
      const idle = [...this.idleSinceMs.keys()].find((node) => node.name === name)
      if (idle !== undefined) this.idleSinceMs.delete(idle)
      this.all.set(name, idle ?? this.nodeAt(name))
    }
    for (const [name, node] of this.all) {
      if (primaries.has(name)) continue
      hasChanged = true
      this.all.delete(name)
      this.idleSinceMs.set(node, performance.now())
    }
    if (!hasChanged) return
    this.options.arranged()
    this.noteCommon()
    this.options.onCame?.()
  }

  private nodeAt(name: string): PrimaryNode {
    const { durability, onRefused, heard, onCame } = this.options
    const node = new PrimaryNode({
      address: withPlace(this.form, name),
      name,
      durability,
      heard,
      cluster: {
        moved: () => this.hurry(),
        sendOn: (refusal, sending) => this.sendOn(refusal, sending, name),
      },
      onUp: () => {
        if (this.named(COMMON_SLOT) === node) this.noteCommon(true)
        onCame?.()
      },
      onDown: () => {
        this.hurry()
        if (this.common === node) this.options.onDown?.()
      },
      onRefused: (error) => {
        if (error instanceof StoreRefused) this.refused = error
        onRefused?.(error)
      },
    })
    return node
  }

  /** What belongs to no shard may have another primary than before, or the same anew. */
  private noteCommon(isAnew = false): void {
    const node = this.at(COMMON_SLOT)
    if (node === null || (node === this.common && !isAnew)) return
    if (this.common !== null && this.common !== node) this.options.onDown?.()
    this.common = node
    this.options.onUp?.()
  }

  /** Sends the same bytes to the node that a refusal names. Null: it names none, or none that can be asked. */
  private sendOn(refusal: string, sending: Sending, from: string): Promise<StoreAnswer> | null {
    const [word, , place = ''] = refusal.split(' ')
    if (word === 'CLUSTERDOWN' || word === 'READONLY' || word === 'MOVED') this.hurry()
    if (word !== 'MOVED' && word !== 'ASK') return null
    const hops = (sending.hops ?? 0) + 1
    const target = this.all.get(addressFrom(place, from))
    if (target === undefined || !target.isUp || hops > HOPS_MAX) return null
    return sendThere(target, { ...sending, hops, isAsking: word === 'ASK' })
  }
}

/** An answer from elsewhere is relied on when the replicas there have what it says: nobody else asks their gate. */
async function sendThere(target: PrimaryNode, sending: Sending): Promise<StoreAnswer> {
  const answer = await target.store.sendHere(sending)
  if (answer.kind !== 'reply' || !target.isGated) return answer
  return (await target.kept()) ? answer : { kind: 'lost' }
}
