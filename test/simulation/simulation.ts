/**
 * simulation - the world of one seed: some workers on an in-memory store, their clients, network and clocks.
 *
 * Its events are drawn from the seed. `run.ts` determines their order.
 */
import type { Primaries } from '../../cluster/primaries.ts'
import type { ClusterNodes } from '../../cluster/slots/cluster-nodes.ts'
import { ClusterStore } from '../../cluster/slots/cluster-store.ts'
import type { NodeEvents } from '../../cluster/slots/shard-node.ts'
import type { Protocol, Store } from '../../cluster/store.ts'
import { StrangersLive } from '../../cluster/worker/protocol.ts'
import { type Ask, Clients } from './client.ts'
import { nodesAt } from './cluster/nodes-text.ts'
import { type OrderBugs, Orders } from './cluster/orders.ts'
import { SimCluster } from './cluster/sim-cluster.ts'
import type { SimNode } from './cluster/sim-node.ts'
import { type ClusterBugs, SimNodeLink } from './cluster/sim-node-link.ts'
import { CONNECTION_OF, Network, type Request } from './network.ts'
import { type ClaimTimes, Observer, type Performance } from './observer.ts'
import { type Chance, makeChance } from './prng.ts'
import { CLAIMS_STAND_MS, type Effect, type ProcessBugs, SimProcess } from './process.ts'
import { SimStore } from './sim-store.ts'
import { VirtualTime, WorkerClock } from './virtual-time.ts'

export const WORKERS = 3
const STORE_BEGINS_MS = 1_700_000_000_000
/** A heartbeat every three seconds, one and a half for its answer, and clocks that run at their own pace. */
const BLIND_MS_MAX = 5_200
/** A worker may have been silent for so long when the world took what it brought. */
const SILENT_BEFORE_MS = 5_500
/** Two workers' ideas of the store's time differ by less. */
const CLOCKS_APART_MS = 11_000
/**
 * Clock differences of two primaries: one so large that commits by the wrong clock are refused, and the largest one
 * allowed.
 */
const CLOCKS_FAR_MS = 7_000
const CLOCKS_NEAR_MS = 400

/** The chances in one step that a node learns of a slot that has changed its owner. */
const NEWS_SOON = 0.3
const NEWS_LATE = 0.004

/** The protocol numbers of a release and of one that cannot communicate with it. */
const PROTOCOLS: readonly Protocol[] = [
  { speaks: 1, understands: 1 },
  { speaks: 3, understands: 2 },
]

/** A named mistake, planted in the runtime, in the store or in the behaviours. */
export interface Bug extends ProcessBugs {
  readonly name: string
  /** The pattern of the violation that must appear. */
  readonly seenAs: RegExp
  /** A seed that showed it, where few do: it is tried first. */
  readonly seed?: number
  wrapStore?(store: Store): Store
  /** The bug that is planted if there are two primaries, because it shows only there. */
  readonly cluster?: ClusterBugs
  /** The bug that is planted in orders to move a shard, for the same reason. */
  readonly orders?: OrderBugs
}

export class Simulation {
  readonly trace: string[] = []
  readonly chance: Chance
  readonly time = new VirtualTime()
  readonly base: SimStore | SimCluster
  readonly network = new Network(() => this.time.nowMs)
  readonly observer = new Observer(
    () => this.time.nowMs,
    () => this.storeMs(),
  )
  readonly clients: Clients
  processes: SimProcess[] = []
  /** How far the store's clock is from virtual time. */
  storeOffsetMs = STORE_BEGINS_MS
  /** Virtual times at which the store's clock went back. */
  readonly backAtMs: number[] = []
  /** Commits that the store lost after their owner had received the confirmation. */
  readonly losses: { readonly shard: number; readonly owner: SimProcess; readonly atMs: number }[] = []
  /** Chances of faults; all zero in peace. */
  faults = 1
  throwTimers = 0
  /** The virtual time until which time passes quickly, because a process or node is unreachable. */
  hurryUntilMs = 0
  /** Virtual time until which the store is full. */
  fullUntilMs = 0
  /** Processes that were killed or stopped. */
  ended = 0
  /** Every n-th process is on another machine, so that the others cannot see that it has ended. */
  readonly unseenEvery: number
  /** Whether this seed's store loses commits now and then. */
  readonly setsBack: boolean
  /** Whether shards move from one primary to another in this seed, at once behind a fence or key by key. */
  moves: 'none' | 'fence' | 'keys' = 'none'
  movesBegun = 0
  readonly orders: Orders
  /** Whether processes of two releases are started in this seed, which cannot talk to each other. */
  readonly isMixed: boolean
  /** Lost primaries: the node that takes their place and the nodes that learn of it later, each at a virtual time. */
  readonly heirs: { readonly node: SimNode; readonly atMs: number; readonly deposedAtMs: number }[] = []
  private readonly bug: Bug | null
  private made = 0

  /** `primaries` is the number of nodes that hold the shards, each with replicas and its own clock. */
  constructor(seed: number, bug: Bug | null, primaries: number) {
    this.chance = makeChance(seed)
    this.bug = bug
    this.base = primaries === 1 ? new SimStore() : this.makeCluster(primaries)
    this.unseenEvery = 1 + this.chance.below(6)
    this.setsBack = this.chance.hit(0.3) && primaries === 1
    this.isMixed = this.chance.hit(0.15) && primaries === 1
    this.orders = this.makeOrders()
    this.clients = new Clients(this.chance, (ask) => this.note(`answer ask ${ask.n} ${said(ask)}`))
  }

  note(line: string): void {
    this.trace.push(`${this.time.nowMs.toFixed(1)} ${line}`)
  }

  startProcess(): SimProcess {
    this.made += 1
    const n = this.made
    const { chance } = this
    const storeMs = this.storeMs() + chance.below(2_000) - 1_000
    const clock = new WorkerClock(this.time, {
      rate: 0.995 + chance.below(11) / 1_000,
      originMs: chance.below(100_000),
      storeMs,
    })
    const { store, primaries } = this.storeFor(n, clock, () => process.worker.connected())
    const process: SimProcess = new SimProcess({
      n,
      clock,
      store,
      primaries,
      observer: this.observer,
      random: () => chance.next(),
      bugs: this.bug ?? {},
      protocol: this.isMixed ? chance.pick(PROTOCOLS) : undefined,
      nowMs: () => this.time.nowMs,
      hopeless: () => this.end(process),
      processGone: (record) => record.pid % this.unseenEvery !== 0 && this.process(record.pid)?.state === 'dead',
      timerThrows: () => {
        if (this.throwTimers === 0) return false
        this.throwTimers -= 1
        return true
      },
      mayOverlap: (earlier, times) => this.mayOverlap(earlier, times),
      fault: (sentence) => this.fault(sentence),
    })
    this.processes.push(process)
    this.base.connected.add(n)
    this.note(`start p${n}`)
    // One that was refused stays away; one whose store did not answer in time is started again.
    process.worker.start().catch((error) => (error instanceof StrangersLive ? this.kill(process) : this.end(process)))
    return process
  }

  /**
   * The store as one process sees it. `came` is whether a primary, out of several, can be reached or now holds other
   * shards.
   */
  private storeFor(
    n: number,
    clock: WorkerClock,
    came: () => void,
  ): { store: Store; primaries: Primaries | undefined } {
    const { base, bug, network } = this
    if (base instanceof SimStore)
      return { store: network.link(n, this.observer.watch(bug?.wrapStore?.(base) ?? base)), primaries: undefined }
    const bugs = bug?.cluster ?? {}
    const sent = new Set<string>()
    const linkOf = (name: string, events: NodeEvents, nodes: ClusterNodes<SimNodeLink>): SimNodeLink => {
      const node = base.node(name)
      if (node === undefined) throw new Error(`Nobody is called ${name}`)
      return new SimNodeLink({
        from: n,
        node,
        cluster: base,
        network,
        clock,
        events,
        nodes: bugs.isDeaf === true ? { targetOf: () => null } : nodes,
        bugs,
        sent,
        violated: (sentence) => this.observer.violated(sentence),
      })
    }
    let isTold = false
    const store = new ClusterStore(
      {
        seeds: base.nodes.map(({ name }) => name),
        clock,
        makeNode: linkOf,
        askApart: (place) => {
          const node = base.node(place)
          const isDown = node === undefined || node.state === 'down' || (isTold && bugs.isDeaf === true)
          isTold = true
          return network.ask({ from: n, method: 'nodes' }, null, async () => (isDown ? null : nodesAt(base, node)))
        },
      },
      { onUp: came, onCame: came },
    )
    return { store, primaries: bugs.hasOneClock === true ? undefined : store }
  }

  /** The clocks of two primaries differ by seconds; if shards move, by no more than is allowed. */
  private makeCluster(primaries: number): SimCluster {
    const draw = this.bug?.orders === undefined ? this.chance.next() : 1
    this.moves = draw < 0.35 ? 'none' : draw < 0.55 ? 'keys' : 'fence'
    const apartMs = this.moves === 'none' ? CLOCKS_FAR_MS : CLOCKS_NEAR_MS
    const offsets = Array.from({ length: primaries }, (_, n) => n * apartMs)
    return new SimCluster(offsets, {
      observer: this.observer,
      virtualMs: () => this.time.nowMs,
      newsChance: () => (this.chance.hit(0.3) ? NEWS_SOON : NEWS_LATE),
    })
  }

  private makeOrders(): Orders {
    return new Orders({
      cluster: this.base as SimCluster,
      time: this.time,
      chance: this.chance,
      bugs: this.bug?.orders ?? {},
      fenceKept: (shard, token) => this.observer.sawFence(shard, token, true),
      note: (line) => this.note(line),
    })
  }

  process(n: number): SimProcess | undefined {
    return this.processes.find((process) => process.n === n)
  }

  storeMs(): number {
    return Math.floor(this.time.nowMs + this.storeOffsetMs)
  }

  /** Clocks of the processes and orders whose timers run. */
  awakeClocks(): Set<WorkerClock> {
    return new Set([...this.processes.filter(({ isAwake }) => isAwake), ...this.orders.live].map(({ clock }) => clock))
  }

  /** Has the store do what a request asks. */
  async execute(request: Request): Promise<unknown> {
    this.base.nowMs = this.storeMs()
    this.base.full = this.time.nowMs < this.fullUntilMs
    return request.run()
  }

  describe({ n, from, method, shard }: Request): string {
    return `${method}#${n} p${from}${shard < 0 ? '' : ` s${shard}`}`
  }

  kill(process: SimProcess): void {
    this.note(`kill p${process.n}`)
    process.state = 'dead'
    this.base.connected.delete(process.n)
    this.time.forget(process.clock)
    for (const { performance } of process.effects) this.observer.ends(performance)
    process.effects = []
    this.network.answers = this.network.answers.filter(({ request }) => request.from !== process.n)
  }

  /** A process ends by itself: another one is started in its place. */
  private end(process: SimProcess): void {
    if (process.state === 'dead') return
    this.kill(process)
    this.startProcess()
  }

  /** Whether nothing passes on the connection of a request, either way. */
  isHeld({ from, method }: Request): boolean {
    return this.isCutOff(from) || this.process(from)?.illConnection === CONNECTION_OF[method]
  }

  isCutOff(n: number): boolean {
    return (this.process(n)?.cutOff.untilMs ?? 0) > this.time.nowMs
  }

  /**
   * The world accepts the result of an effect. It does so once, unless the end of an earlier attempt could not be
   * known before its claim ended, and never from a process that has lost its claim.
   */
  takes(process: SimProcess, { performance }: Effect): void {
    const { nowMs } = this.time
    const { sinceMs, untilMs } = process.cutOff
    if (untilMs > nowMs && nowMs - sinceMs > BLIND_MS_MAX)
      this.observer.violated(`Taken while p${process.n} was cut off: ${performance.item}`)
    this.observer.takes(performance, (earlier) => {
      const before = this.processes.find(({ worker }) => worker.id === earlier.worker)
      const mayHaveEnded = before === undefined || before.state === 'dead' || this.observer.setBackAtMs.length > 0
      const wasSilent = before !== undefined && before.doubtedAtMs >= earlier.atMs - SILENT_BEFORE_MS
      if (mayHaveEnded || (wasSilent && nowMs - earlier.atMs >= CLAIMS_STAND_MS - SILENT_BEFORE_MS)) return true
      const isTelling = [...this.network.handingIn.values()].includes(before.n)
      return (
        before !== process &&
        this.observer.wasToldTooLate(performance.item, earlier, { apartMs: this.apartMs, isTelling })
      )
    })
  }

  /**
   * An item may be performed again while it is performed, when the first performer lost its claim without knowing it.
   */
  private mayOverlap(earlier: Performance, { untilMs, claimedAtMs }: ClaimTimes): boolean {
    const process = this.processes.find(({ worker }) => worker.id === earlier.worker)
    if (process === undefined || this.observer.setBackAtMs.length > 0) return true
    return untilMs <= this.storeMs() + this.apartMs || process.doubtedAtMs >= claimedAtMs
  }

  /** By how much two ideas of the store's time differ at most. */
  private get apartMs(): number {
    return CLOCKS_APART_MS + (this.base instanceof SimCluster ? CLOCKS_FAR_MS : 0)
  }

  private fault(sentence: string): void {
    this.note(sentence)
    if (sentence.includes('torn')) this.observer.violated(sentence)
  }
}

function said({ result }: Ask): string {
  return result?.kind === 'answer' ? JSON.stringify(result.reply) : (result?.kind ?? '')
}
