/** shard-rig - one shard over SimStore in virtual time, whose commits a test decides about. */
import { setImmediate as settle } from 'node:timers/promises'
import type { CommandType, Fact, LaneType, Op } from '../../../cluster/behaviour.ts'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { Fence, makeFenceCells } from '../../../cluster/fence.ts'
import { LaneRunner } from '../../../cluster/items/lane-runner.ts'
import { Shard } from '../../../cluster/shard/shard.ts'
import type { ShardWorld } from '../../../cluster/shard/world.ts'
import type { Commit, EntriesRequest, Store, Verdict } from '../../../cluster/store.ts'
import type { AskResult, Work } from '../../../cluster/work.ts'
import { makeChance } from '../../simulation/prng.ts'
import { SimStore } from '../../simulation/sim-store.ts'
import { VirtualTime, WorkerClock } from '../../simulation/virtual-time.ts'

const COUNT_KEY = '{s000}:count'
const LOOKS_MAX = 1_000

/** Counts in a hash. `odd` orders a write that the store refuses, `says` notifies subscribers and the operator. */
const COUNT: CommandType<{ odd?: boolean; reads?: boolean; says?: string }, unknown> = {
  name: 'count',
  entities: () => [],
  counters: () => [],
  facts: () => [{ read: 'fields', key: COUNT_KEY, fields: ['n'] }],
  decide({ odd, reads, says }, _states, facts) {
    const n = Number(facts.field(COUNT_KEY, 'n') ?? '0')
    if (reads === true) return { kind: 'done', reply: n }
    if (odd === true) return { kind: 'done', reply: null, ops: [{ key: COUNT_KEY, write: 'ZADD', args: ['1', 'a'] }] }
    const ops: Op[] = [{ key: COUNT_KEY, write: 'HSET', args: ['n', String(n + 1)] }]
    if (says === undefined) return { kind: 'done', reply: n + 1, ops }
    return { kind: 'done', reply: n + 1, ops, signals: [{ topic: 'count', text: says }], notes: [{ says }] }
  },
}

export type Script = (commit: Commit, apply: () => Promise<Verdict>) => Promise<Verdict>

/** A shard over a store whose commits `script` decides about, and whose reads wait for `gate`. */
export class Rig {
  readonly store = new SimStore()
  readonly time = new VirtualTime()
  readonly clock = new WorkerClock(this.time, { rate: 1, originMs: 0, storeMs: this.store.nowMs })
  readonly chance = makeChance(3)
  readonly fence = new Fence(makeFenceCells(), () => this.time.nowMs + 1)
  readonly commits: Commit[] = []
  readonly forwarded: Work[] = []
  readonly halted: string[] = []
  readonly lost: object[] = []
  /** The notes of turns for the operator. */
  readonly notes: object[] = []
  /** The store is unavailable to readers of what other processes left, and reports it at once. */
  isDeaf = false
  looks = 0
  gone = 0
  /** Commits whose outcome was reported as unknown. */
  doubts = 0
  script: Script = (_commit, apply) => apply()
  gate: Promise<void> | null = null
  readonly shard: Shard
  private readonly lanes: readonly LaneType[]

  constructor(lanes: readonly LaneType[] = []) {
    this.lanes = lanes
    this.shard = new Shard(0, this.world())
  }

  /** Takes the shard, which was held under the token `saw`. */
  async open(saw = ''): Promise<this> {
    const opened = this.shard.open(saw)
    await this.pass(0)
    if (!(await opened)) throw new Error('The shard did not open')
    return this
  }

  /** Asks; `answered` is called with the answer. */
  ask(
    body: { odd?: boolean; reads?: boolean; says?: string } = {},
    answered: () => void = () => undefined,
  ): { result: AskResult | null } {
    const ask: { result: AskResult | null } = { result: null }
    const cmdId = newCmdId(this.clock.nowMs(), () => this.chance.next())
    void this.shard.ask({ name: 'count', cmdId, body }, COUNT as CommandType, 0).then((result) => {
      ask.result = result
      answered()
    })
    return ask
  }

  /** Lets `ms` pass, in steps that call every timer at its time. */
  async pass(ms: number): Promise<void> {
    const endMs = this.time.nowMs + ms
    const mine = new Set([this.clock])
    for (let step = 0; step < 2_000; step += 1) {
      for (let i = 0; i < 4; i += 1) await settle()
      const nextMs = this.time.nextMs(mine)
      if (nextMs > endMs) break
      this.store.nowMs += nextMs - this.time.nowMs
      this.time.nowMs = Math.max(this.time.nowMs, nextMs)
      for (const timer of this.time.dueTimers(mine)) this.time.call(timer)
    }
    this.store.nowMs += endMs - this.time.nowMs
    this.time.nowMs = endMs
    for (let i = 0; i < 4; i += 1) await settle()
  }

  count(): number {
    return Number((this.store.dump().get(COUNT_KEY)?.value as [string, string][] | undefined)?.[0]?.[1] ?? '0')
  }

  private world(): ShardWorld {
    const linked: Store = Object.assign(Object.create(this.store) as SimStore, {
      commit: (commit: Commit) => {
        this.commits.push(commit)
        return this.script(commit, () => this.store.commit(commit))
      },
      read: async (shard: number, facts: readonly Fact[]) => {
        if (this.gate !== null) await this.gate
        return this.store.read(shard, facts)
      },
      entries: (request: EntriesRequest) => {
        this.looks += 1
        // Or a shard that asks without a pause would end the run of the tests.
        if (this.looks > LOOKS_MAX) return new Promise<null>(() => undefined)
        return this.isDeaf ? Promise.resolve(null) : this.store.entries(request)
      },
    })
    return {
      store: linked,
      clock: this.clock,
      entities: new Map(),
      timers: {},
      commands: new Map([['count', COUNT as CommandType]]),
      lanes: this.lanes,
      runner: new LaneRunner(this.lanes, { failed: () => undefined }),
      fence: this.fence,
      worker: 'me',
      fieldBudget: { left: 100 },
      random: () => this.chance.next(),
      isGone: () => false,
      answered: () => undefined,
      forward: (_shard, works) => this.forwarded.push(...works),
      reported: () => undefined,
      gone: () => {
        this.gone += 1
      },
      resync: (nowMs, sentAtMs) => this.clock.set(nowMs, sentAtMs),
      log: {
        halted: ({ reason }) => this.halted.push(reason),
        threw: () => undefined,
        doubt: () => {
          this.doubts += 1
        },
        badop: () => undefined,
        lost: (facts) => this.lost.push(facts),
        committed: () => undefined,
      },
      noted: (note) => void this.notes.push(note),
    }
  }
}
