/**
 * orders - orders to move a shard, as `sendwright cluster move` gives them, with the product's own steps on in-memory
 * nodes
 *
 * An order lives until its shard has arrived, or until a node that it needs is lost. It may be ended or frozen between
 * any two of its commands. Commands that it has already sent may still be executed, until the next order ends its
 * connections. The next order continues or undoes the move of a shard that was left fenced.
 */
import type { Redis } from 'ioredis'
import { clearOthers, type Follower } from '../../../cluster/slots/clear-slot.ts'
import type { MoveEnd } from '../../../cluster/slots/copy-keys.ts'
import { readHolder } from '../../../cluster/slots/move-fence.ts'
import { endHere, type MoveStep, moveSlot, type SlotMove } from '../../../cluster/slots/move-slot.ts'
import { parseNodes, SHARD_SLOTS, SlotMap } from '../../../cluster/slots/slot-map.ts'
import type { Chance } from '../prng.ts'
import { type VirtualTime, WorkerClock } from '../virtual-time.ts'
import { type ClientOptions, SimClient } from './sim-client.ts'
import type { SimCluster } from './sim-cluster.ts'
import type { SimNode } from './sim-node.ts'

/** Within this time every node learns of every other. */
const HEARD_MS = 500
/** An order that could not confirm its lock for this long does nothing more. */
const HELD_MS_MAX = 6_000

/** The fault that is planted in orders. */
export interface OrderBugs {
  readonly makeClient?: (options: ClientOptions) => SimClient
  /** It does not end commands of other orders, and does not learn of a later order. */
  readonly letsOthersBe?: boolean
}

interface Command {
  readonly client: SimClient
  readonly what: string
  run(): unknown
  resolve(value: unknown): void
  reject(error: Error): void
}

export interface Order {
  readonly n: number
  readonly shard: number
  readonly to: SimNode
  readonly clock: WorkerClock
  readonly clients: Map<SimNode, SimClient>
  /** Sent, and not done yet. */
  commands: Command[]
  /** The results that arrived while it was frozen. */
  readonly unheard: (() => void)[]
  state: 'live' | 'frozen' | 'over'
  /** The virtual time until which it is frozen. */
  wakesAtMs: number
  /** It knows that another order may hold the lock. */
  hasLost: boolean
  /** The last step that it has done. */
  step: MoveStep | 'begun anew'
}

export interface OrdersDeps {
  readonly cluster: SimCluster
  readonly time: VirtualTime
  readonly chance: Chance
  readonly bugs: OrderBugs
  fenceKept(shard: number, token: string): void
  note(line: string): void
}

export class Orders {
  readonly all: Order[] = []
  /** Orders whose shard had arrived when they ended. */
  done = 0
  private readonly deps: OrdersDeps

  constructor(deps: OrdersDeps) {
    this.deps = deps
  }

  get live(): Order[] {
    return this.all.filter(({ state }) => state === 'live')
  }

  /** Orders with commands that could be executed now, including those of ended and frozen orders. */
  get sending(): Order[] {
    return this.all.filter(({ commands }) => commands.length > 0)
  }

  begin(shard: number, to: SimNode): void {
    const { cluster, time, note } = this.deps
    const clock = new WorkerClock(time, { rate: 1, originMs: 0, storeMs: 0 })
    const order: Order = {
      n: this.all.length + 1,
      shard,
      to,
      clock,
      clients: new Map(),
      commands: [],
      unheard: [],
      state: 'live',
      wakesAtMs: 0,
      hasLost: false,
      step: 'begun anew',
    }
    this.all.push(order)
    cluster.moves += 1
    note(`order ${order.n}: s${shard} to ${to.name}`)
    this.run(order).then(
      () => {
        this.done += 1
        this.over(order, 'is done')
      },
      (error: Error) => this.over(order, `ends: ${error.message}`),
    )
  }

  /** Has one command of an order done. */
  advance(order: Order): void {
    const { chance, cluster, note } = this.deps
    cluster.trouble()
    const [command] = order.commands.splice(chance.below(order.commands.length), 1)
    if (command === undefined) return
    const { client, what, run, resolve, reject } = command
    note(`order ${order.n} ${what} at ${client.node.name}`)
    let hear: () => void
    try {
      if (client.isEnded || client.isGone) throw new Error('Connection is closed.')
      const value = run()
      hear = () => resolve(value)
    } catch (error) {
      hear = () => reject(error as Error)
    }
    if (order.state === 'frozen') order.unheard.push(hear)
    else hear()
  }

  /**
   * An order is ended from outside. It receives nothing more, but the commands that it has sent are executed at some
   * time.
   */
  kill(order: Order): void {
    if (order.state === 'over') return
    this.over(order, 'is killed')
    for (const command of order.commands) Object.assign(command, { resolve: () => undefined, reject: () => undefined })
  }

  freeze(order: Order, ms: number): void {
    const { chance, note, time } = this.deps
    order.state = 'frozen'
    order.wakesAtMs = time.nowMs + ms
    // Whether it knows that when it wakes is a race.
    order.hasLost ||= ms > HELD_MS_MAX && chance.hit(0.5)
    note(`order ${order.n} stands still`)
  }

  /** Orders that have been frozen for long enough continue. */
  wake(isPeace: boolean): void {
    const { note, time } = this.deps
    for (const order of this.all) {
      if (order.state !== 'frozen' || !(isPeace || order.wakesAtMs <= time.nowMs)) continue
      order.state = 'live'
      note(`order ${order.n} wakes`)
      for (const hear of order.unheard.splice(0)) hear()
    }
  }

  private over(order: Order, how: string): void {
    if (order.state === 'over') return
    const { note, time } = this.deps
    order.state = 'over'
    time.forget(order.clock)
    note(`order ${order.n} ${how}`)
  }

  /** As `src/store/cluster/move-shards.ts` does with one shard. */
  private async run(order: Order): Promise<void> {
    const { cluster, bugs, chance } = this.deps
    const { shard, to } = order
    const nodes = cluster.members.filter(
      ({ heir, state }) => heir === null && (state === 'primary' || state === 'held'),
    )
    const ends = nodes.map((node) => this.endOf(order, node))
    const replicas = cluster.followed.map(
      ({ node, primary }): Follower => ({
        ...(node === primary ? this.replicaOf(order, primary) : this.endOf(order, node)),
        primary: primary.id,
      }),
    )
    if (bugs.letsOthersBe !== true) for (const node of nodes) await this.endOthers(order, node)
    const source = await holderOf(ends, SHARD_SLOTS[shard] ?? 0)
    const target = ends.find(({ id }) => id === to.id)
    if (source === undefined || target === undefined) throw new Error('Nobody holds it: look again')
    const move: SlotMove = {
      shard,
      slot: SHARD_SLOTS[shard] ?? 0,
      source,
      target,
      primaries: ends,
      replicas,
      ids: new Set(cluster.members.map(({ id }) => id)),
      heardMs: HEARD_MS,
      clock: order.clock,
      nonce: `m${order.n}.${chance.below(1_000)}`,
      isReplicated: true,
      mustHold: () => this.mustHold(order),
      at: (step) => this.didStep(order, step, source),
    }
    if (source === target) return endHere(move)
    const { uncleared } = await readHolder(source.client, shard)
    await clearOthers({ ...move, holder: source }, uncleared)
    await moveSlot(move, () => undefined)
  }

  private endOf(order: Order, node: SimNode): MoveEnd {
    const client = this.makeClient(order, node, false)
    order.clients.set(node, client)
    return { id: node.id, name: node.name, client: client as unknown as Redis }
  }

  private replicaOf(order: Order, node: SimNode): MoveEnd {
    const client = this.makeClient(order, node, true)
    return { id: `${node.id}r`, name: `${node.name}r`, client: client as unknown as Redis }
  }

  private makeClient(order: Order, node: SimNode, isReplica: boolean): SimClient {
    const { cluster, bugs } = this.deps
    const options: ClientOptions = {
      node,
      isReplica,
      cluster,
      shard: order.shard,
      clock: order.clock,
      send: (client, what, run) =>
        new Promise((resolve, reject) => {
          order.commands.push({ client, what, run, resolve: (value) => resolve(value as never), reject })
        }),
    }
    return bugs.makeClient?.(options) ?? new SimClient(options)
  }

  /** Commands that others sent to a node and that it has not read yet are discarded. */
  private endOthers(order: Order, node: SimNode): Promise<void> {
    const client = order.clients.get(node)!
    const run = (): void => {
      for (const other of this.all) {
        const theirs = other === order ? undefined : other.clients.get(node)
        if (theirs === undefined) continue
        theirs.isEnded = true
        if (other.state === 'over') other.commands = other.commands.filter((command) => command.client !== theirs)
      }
    }
    return new Promise((resolve, reject) => {
      order.commands.push({ client, what: 'CLIENT KILL', run, resolve: () => resolve(), reject })
    })
  }

  private mustHold(order: Order): void {
    if (this.deps.bugs.letsOthersBe === true) return
    if (order.hasLost) throw new Error('The lock could not be held: run the command again')
  }

  private didStep(order: Order, step: MoveStep, { name }: MoveEnd): void {
    const { cluster, fenceKept } = this.deps
    order.step = step
    if (step !== 'fenced') return
    const node = cluster.node(name)
    const token = node?.metaOf(order.shard).get('tok')
    if (token !== undefined) fenceKept(order.shard, token)
  }
}

/** The node that claims a slot now. If two nodes claim it, the one with the higher epoch. */
async function holderOf(ends: readonly MoveEnd[], slot: number): Promise<MoveEnd | undefined> {
  const map = new SlotMap()
  const texts = await Promise.all(ends.map(({ client }) => client.call('CLUSTER', 'NODES') as Promise<string>))
  for (const [at, text] of texts.entries()) map.take(parseNodes(text, ends[at]?.name ?? ''), ends[at]?.name ?? '')
  return ends.find(({ name }) => name === map.addressOf(slot))
}
