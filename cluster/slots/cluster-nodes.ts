/**
 * cluster-nodes - the current primaries of a Redis Cluster, and the map of shard holders
 *
 * The map is read from one node after the other every two seconds. While the map is known to be wrong, or a primary is
 * silent or unreachable, it is read from all that answer: at once, then after waits that grow to a tenth of a second,
 * and later to a second. A silent node delays no other. If no primary answers, the seeds and every known node are
 * asked.
 *
 * Guarantee: a primary that no longer holds any slot is dropped at once. Commands in flight there get an unknown
 * outcome, and a retry reaches the current holder, however long the old one would have been silent.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { StoreRefused } from '../redis/settings.ts'
import type { NodeEvents, ShardNode } from './shard-node.ts'
import { addressFrom, COMMON_SLOT, parseNodes, SlotMap } from './slot-map.ts'

/** Between two looks whether all is well, and between two reads of the map while it is. */
const TICK_MS = 250
const LOAD_MS = 2_000
/** Between two reads while it is not: doubled from the first to the second, to the third once elections are over. */
const HURRY_MS = 10
const HURRY_MS_MAX = 100
const AWAY_MS = 1_000
const ELECTIONS_MS = 20_000
/** A node that has not answered for this long is asked again. */
export const ASK_MS_MAX = 1_000
/** All primaries are waited for; one that is away longer than this is waited for by its shards alone. */
const OPEN_MS_MAX = 10_000
const OPEN_STEP_MS = 50
/** A node without slots is dropped after this time, when its commands in flight have ended. */
const KEPT_MS = 10_000
/** Nodes that send one command on. */
const HOPS_MAX = 4

/** Receives events about the nodes. */
export interface NodesHears {
  /** The primary of keys outside any shard can be reached, at first, after a reconnect, or because it changed. */
  onUp?(): void
  /** It can no longer be reached. */
  onDown?(): void
  /** A primary can be asked (again), or holds other shards. */
  onCame?(): void
  /** A node breaks the durability level: it is not used. */
  onRefused?(error: Error): void
  /** Nodes or shards are elsewhere. */
  arranged(): void
  /** A message published in the slot of a shard. */
  heard(channel: string, message: Buffer): void
  /** A channel of a shard is subscribed from now on. */
  held(channel: string): void
}

/** How nodes are reached. */
export interface NodesReach<Node extends ShardNode> {
  /** `host:port` of some nodes. */
  readonly seeds: readonly string[]
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>
  /** Connects to a primary, by `host:port`. */
  makeNode(name: string, events: NodeEvents, nodes: ClusterNodes<Node>): Node
  /** The result of `CLUSTER NODES` at a node that is not a primary of the map, or does not answer as one. */
  askApart(place: string): Promise<string | null>
}

export class ClusterNodes<Node extends ShardNode> {
  readonly map = new SlotMap()
  /** Primaries by `host:port`. */
  readonly all = new Map<string, Node>()
  private readonly reach: NodesReach<Node>
  private readonly hears: NodesHears
  private readonly places: Set<string>
  private readonly idleSinceMs = new Map<Node, number>()
  /** Nodes to query. */
  private readonly asking = new Set<string>()
  private common: Node | null = null
  private refused: Error | null = null
  private isHurried = true
  private isClosed = false
  private loadedAtMs = Number.NEGATIVE_INFINITY
  private hurryMs = HURRY_MS
  private calmAtMs = Number.NEGATIVE_INFINITY
  private turn = 0
  private dueAtMs = Number.POSITIVE_INFINITY
  private cancel: () => void = () => undefined

  constructor(reach: NodesReach<Node>, hears: NodesHears) {
    this.reach = reach
    this.hears = hears
    this.places = new Set(reach.seeds)
    this.plan(0)
  }

  /** Resolves when all primaries can be reached, or after ten seconds if that of keys outside any shard can be. */
  async ready(): Promise<void> {
    const endMs = performance.now() + OPEN_MS_MAX
    while (!(this.map.isWhole && this.areUp)) {
      if (this.refused !== null) throw this.refused
      if (performance.now() > endMs) break
      await pause(OPEN_STEP_MS)
    }
    if (this.at(COMMON_SLOT) === null) throw new Error('The cluster does not answer: none of its nodes is known')
  }

  /** The reachable primary of a slot; null if none. */
  at(slot: number): Node | null {
    const node = this.named(slot)
    return node?.isUp === true ? node : null
  }

  /** The primary of a slot, whether it can be asked or not. */
  named(slot: number): Node | null {
    return this.all.get(this.map.addressOf(slot) ?? '') ?? null
  }

  /** The map is wrong: it is read again soon. */
  hurry(): void {
    this.isHurried = true
    this.plan(this.loadedAtMs + this.hurryMs - this.reach.clock.monotonicMs())
  }

  /**
   * The node that takes what `from` refused, if the refusal names one that can be asked, and not so many have sent it
   * on before (`hops`).
   */
  targetOf(refusal: string, { from, hops }: { from: string; hops: number }): Node | null {
    const [word = '', , place = ''] = refusal.split(' ')
    if (ELSEWHERE.has(word)) this.hurry()
    if (word !== 'MOVED' && word !== 'ASK') return null
    const target = this.all.get(addressFrom(place, from))
    return target?.isUp === true && hops < HOPS_MAX ? target : null
  }

  close(): void {
    this.isClosed = true
    this.cancel()
    for (const node of [...this.all.values(), ...this.idleSinceMs.keys()]) node.close()
  }

  private get areUp(): boolean {
    return [...this.all.values()].every(({ isUp }) => isUp)
  }

  /** Looks again after this time, or sooner if already planned. */
  private plan(ms: number): void {
    const { clock } = this.reach
    const waitMs = Math.max(0, ms)
    const atMs = clock.monotonicMs() + waitMs
    if (this.isClosed || atMs >= this.dueAtMs) return
    this.cancel()
    this.dueAtMs = atMs
    this.cancel = clock.after(waitMs, () => {
      this.dueAtMs = Number.POSITIVE_INFINITY
      this.look()
    })
  }

  /** Reads the map, if it is time: from all nodes while something is wrong, otherwise from one after the other. */
  private look(): void {
    const atMs = this.reach.clock.monotonicMs()
    this.dropIdle(atMs)
    const nodes = [...this.all.values()]
    const up = nodes.filter(({ isUp }) => isUp)
    const areSound = nodes.every(({ isSilent, isUp }) => isUp && !isSilent)
    const isCalm = !this.isHurried && this.map.isWhole && areSound && nodes.length > 0
    if (isCalm) this.calmAtMs = atMs
    const hurryMsMax = atMs - this.calmAtMs < ELECTIONS_MS ? HURRY_MS_MAX : AWAY_MS
    this.hurryMs = isCalm ? HURRY_MS : Math.min(2 * this.hurryMs, hurryMsMax)
    this.plan(isCalm ? TICK_MS : this.hurryMs)
    if (isCalm && atMs - this.loadedAtMs < LOAD_MS) return
    this.turn += 1
    this.isHurried = false
    this.loadedAtMs = atMs
    for (const node of isCalm ? up.slice(this.turn % up.length).slice(0, 1) : up)
      void this.ask(node.name, () => node.nodes())
    if (up.length === 0) for (const place of this.places) void this.ask(place, () => this.reach.askApart(place))
  }

  private async ask(name: string, nodes: () => Promise<string | null>): Promise<void> {
    if (this.asking.has(name)) return
    this.asking.add(name)
    const cancel = this.reach.clock.after(ASK_MS_MAX, () => this.asking.delete(name))
    const text = await nodes()
    cancel()
    this.asking.delete(name)
    if (text !== null) this.took(text, name)
  }

  private dropIdle(atMs: number): void {
    for (const [node, sinceMs] of this.idleSinceMs) {
      if (atMs - sinceMs < KEPT_MS) continue
      this.idleSinceMs.delete(node)
      node.close()
    }
  }

  /** Applies the answer of one node about all, and keeps a store for each primary of the map. */
  private took(text: string, asked: string): void {
    if (this.isClosed) return
    const lines = parseNodes(text, asked)
    for (const { address } of lines) this.places.add(address)
    let hasChanged = this.map.take(lines, asked)
    const { primaries } = this.map
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
      this.idleSinceMs.set(node, this.reach.clock.monotonicMs())
      node.depose()
    }
    if (!hasChanged) return
    this.hears.arranged()
    this.noteCommon()
    this.hears.onCame?.()
  }

  private nodeAt(name: string): Node {
    const { onRefused, heard, held, onCame } = this.hears
    const isMine = (): boolean => this.named(COMMON_SLOT) === node
    const events: NodeEvents = {
      heard,
      held,
      moved: () => this.hurry(),
      onUp: () => {
        if (isMine()) this.noteCommon(true)
        onCame?.()
      },
      onDown: () => {
        this.hurry()
        if (this.common === node) this.hears.onDown?.()
      },
      onRefused: (error) => {
        if (error instanceof StoreRefused) this.refused = error
        onRefused?.(error)
      },
    }
    const node: Node = this.reach.makeNode(name, events, this)
    return node
  }

  /** Keys outside any shard may have a new primary, or the same one reconnected. */
  private noteCommon(isAnew = false): void {
    const node = this.at(COMMON_SLOT)
    if (node === null || (node === this.common && !isAnew)) return
    if (this.common !== null && this.common !== node) this.hears.onDown?.()
    this.common = node
    this.hears.onUp?.()
  }
}

/** Refusals after which the map is read, by their first word. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  'MOVED',
  'CLUSTERDOWN',
  'READONLY',
  'LOADING',
  'MASTERDOWN',
  'NOREPLICAS',
])
