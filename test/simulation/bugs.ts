/**
 * bugs - twenty-five mistakes that a runtime like this one could have, each planted on its own.
 *
 * None of them is in the product: they are subclasses of its classes, wrappers of the store and variants of the toy
 * behaviours. The simulation must see every one of them.
 */

import type { Op } from '../../cluster/behaviour.ts'
import { FactView, type Laid } from '../../cluster/facts/facts.ts'
import { Overlay } from '../../cluster/facts/overlay.ts'
import { Fence, type FenceState, makeFenceCells, type Pass } from '../../cluster/fence.ts'
import { CLAIM_RULES } from '../../cluster/items/claim.ts'
import type { Claim } from '../../cluster/items/pump.ts'
import { countersKey, mailboxKey, outcomesKey } from '../../cluster/keyspace.ts'
import { firstKept } from '../../cluster/mailbox/cursor.ts'
import { decideBatch, type Plan } from '../../cluster/shard/batch.ts'
import type { Batch } from '../../cluster/shard/batch-reader.ts'
import { CommitLoop } from '../../cluster/shard/loop.ts'
import type { LoopHost } from '../../cluster/shard/loop-host.ts'
import { Shard } from '../../cluster/shard/shard.ts'
import type { ShardWorld } from '../../cluster/shard/world.ts'
import { type Commit, changeStore, type Ears, type Store } from '../../cluster/store.ts'
import type { Bug } from './simulation.ts'

/** Reads of outcomes that find nothing. */
const LATE_READS = 4
/** Commits before a cursor is written. */
const CURSOR_LATE = 3

export const BUGS: readonly Bug[] = [
  { name: 'no seq check', seenAs: /claims to follow/, wrapStore: withoutSeqCheck },
  { name: 'no token check', seenAs: /had lost it/, wrapStore: withoutTokenCheck },
  { name: 'cursor outside the commit', seenAs: /Executed twice/, wrapStore: withCursorOutside },
  {
    name: 'effects before the claim',
    seenAs: /without a claim/,
    makeShard: (id, world) => new Shard(id, world, EagerLoop),
  },
  { name: 'INCR instead of absolute', seenAs: /counted/, wrapStore: withIncrements },
  { name: 'overlay off', seenAs: /one key|same key/, makeShard: (id, world) => new Shard(id, world, BareLoop) },
  {
    name: 'overlay cleared at OK',
    seenAs: /one key|same key/,
    makeShard: (id, world) => new Shard(id, world, ForgetfulLoop),
  },
  {
    name: 'an empty batch answers at once',
    seenAs: /in no log|same key/,
    makeShard: (id, world) => new Shard(id, world, HastyLoop),
  },
  {
    name: 'a claim without its guard',
    seenAs: /after its end|twice at once/,
    world: { rules: { ...CLAIM_RULES, stillDue: () => true, flag: [] } },
  },
  {
    name: 'an outcome that comes twice counts twice',
    seenAs: /Counted twice/,
    world: { rules: { ...CLAIM_RULES, isCurrent: (row, attempt) => row.attempt === attempt } },
    wrapStore: (store) => withLostReplies(store),
  },
  {
    name: 'overlay on hashes only',
    seenAs: /after its end|twice at once/,
    makeShard: (id, world) => new Shard(id, world, HashLoop),
  },
  {
    name: 'states not restored after a refused commit',
    seenAs: /counted|remembered/,
    makeShard: (id, world) => new Shard(id, world, StubbornLoop),
  },
  {
    name: 'outcomes cursor outside the commit',
    seenAs: /Executed twice|entries in outcomes/,
    wrapStore: withOutcomesCursorOutside,
  },
  { name: 'claims freed before outcomes are read', seenAs: /lay unread/, wrapStore: withOutcomesLate },
  {
    name: 'a reply told before its commit',
    seenAs: /in no log|same key|told/,
    wrapStore: withLoudCommits,
  },
  {
    name: 'a serial lane that waits for nobody',
    seenAs: /Two at once/,
    makeShard: (id, world) => new Shard(id, world, ImpatientLoop),
  },
  {
    name: 'a head that is not written to',
    seenAs: /after its end|out of order|Two at once/,
    makeShard: (id, world) => new Shard(id, world, StaleLoop),
  },
  {
    name: 'commits that are lost are not told',
    seenAs: /said nothing/,
    makeShard: (id, world) => new Shard(id, world, SilentLoop),
  },
  {
    name: 'a fence that a heartbeat opens again',
    seenAs: /Taken twice/,
    makeFence: (nowMs) => new ForgivingFence(makeFenceCells(), nowMs),
    claimsStandMs: 10_000,
  },
  {
    name: 'a fence that waits for no answer',
    seenAs: /Taken while/,
    makeFence: (nowMs) => new HopefulFence(makeFenceCells(), nowMs),
  },
  {
    name: 'a worker that is judged by its heartbeats alone',
    seenAs: /Kept by/,
    lags: (lags) => lags.filter(({ connection }) => connection === 'commit'),
  },
  { name: 'readiness that asks for shards alone', seenAs: /Ready while/, lags: () => [] },
  {
    name: 'a newcomer that talks to whoever is there',
    seenAs: /Strangers/,
    wrapStore: (store) => withoutMeeting(store),
  },
  {
    name: 'a newcomer that looks and does not say that it is coming',
    seenAs: /Strangers/,
    wrapStore: (store) => withSecretLooks(store),
  },
  { name: 'an address written into a stream', seenAs: /address/, toy: { addressInStream: true } },
]

/** The store takes a commit whatever number it follows, also one that it has. */
function withoutSeqCheck(store: Store): Store {
  let sendings = 0
  return wrapped(store, async (commit) => {
    const seq = (await store.metas([commit.shard]))?.[0]?.seq ?? commit.seq
    sendings += 1
    return store.commit(seq === commit.seq ? commit : { ...commit, seq, commitId: `${commit.commitId}:${sendings}` })
  })
}

/** The store takes a commit whoever holds the shard. */
function withoutTokenCheck(store: Store): Store {
  return wrapped(store, async (commit) => {
    const token = (await store.metas([commit.shard]))?.[0]?.token ?? commit.token
    return store.commit({ ...commit, token })
  })
}

/** The cursor is written after the commit that executed the entries: with the next one, and what they say goes no sooner. */
function withCursorOutside(store: Store): Store {
  const waiting = new Map<number, string>()
  return wrapped(store, async (commit) => {
    const cursor = waiting.get(commit.shard) ?? ''
    const ops = commit.ops.filter(
      ({ key, write }) =>
        !(write === 'UNLINK' && key.includes(':staged:')) && !(write === 'XTRIM' && key.endsWith(':mailbox')),
    )
    if (cursor !== '') ops.push({ key: mailboxKey(commit.shard), write: 'XTRIM', args: ['MINID', firstKept(cursor)] })
    const verdict = await store.commit({ ...commit, cursor, ops })
    if (verdict.kind === 'ok' && commit.cursor !== '') waiting.set(commit.shard, commit.cursor)
    return verdict
  })
}

/** The cursor of outcomes is written some commits after the one that took them up. */
function withOutcomesCursorOutside(store: Store): Store {
  const waiting = new Map<number, { cursor: string; commits: number }>()
  return wrapped(store, async (commit) => {
    const late = waiting.get(commit.shard)
    const isDue = late !== undefined && late.commits >= CURSOR_LATE
    const isTaken = commit.outcomesCursor !== ''
    const ops = commit.ops.filter(
      ({ key, write }) =>
        !(isTaken && write === 'UNLINK' && key.includes(':staged:')) &&
        !(write === 'XTRIM' && key.endsWith(':outcomes')),
    )
    if (isDue) ops.push({ key: outcomesKey(commit.shard), write: 'XTRIM', args: ['MINID', firstKept(late.cursor)] })
    const verdict = await store.commit({ ...commit, outcomesCursor: isDue ? late.cursor : '', ops })
    if (verdict.kind !== 'ok') return verdict
    if (isDue) waiting.delete(commit.shard)
    else if (late !== undefined) late.commits += 1
    if (isTaken) waiting.set(commit.shard, { cursor: commit.outcomesCursor, commits: 0 })
    return verdict
  })
}

/** Whoever takes a shard sees no outcomes at first. */
function withOutcomesLate(store: Store): Store {
  const reads = new Map<number, number>()
  return changeStore(store, {
    async acquire(request) {
      reads.set(request.shard, 0)
      return store.acquire(request)
    },
    async entries(request) {
      const read = (reads.get(request.shard) ?? 0) + (request.of === 'outcomes' ? 1 : 0)
      reads.set(request.shard, read)
      return request.of === 'outcomes' && read < LATE_READS ? [] : store.entries(request)
    },
  })
}

/** The first hand-in of every outcome arrives, and its reply does not: it comes a second time. */
function withLostReplies(store: Store): Store {
  const told = new Set<string>()
  return changeStore(store, {
    async handIn(request) {
      const isKept = await store.handIn(request)
      if (told.has(request.cmdId)) return isKept
      told.add(request.cmdId)
      return false
    },
  })
}

/** Who is coming meets nobody. */
function withoutMeeting(store: Store): Store {
  return changeStore(store, {
    async heartbeat(request) {
      const beat = await store.heartbeat(request)
      const { isComing } = request.record
      return beat.kind === 'ok' && isComing === true ? { ...beat, workers: new Map<string, string>() } : beat
    },
  })
}

/** Who is coming sees who lives, and is seen by nobody. */
function withSecretLooks(store: Store): Store {
  return changeStore(store, {
    async heartbeat(request) {
      const seen = request.record.isComing === true ? await store.look([]) : null
      return seen === null ? store.heartbeat(request) : { kind: 'ok', nowMs: 0, workers: seen.workers }
    },
  })
}

/** What a commit tells is told when it comes, whatever becomes of it. */
function withLoudCommits(store: Store): Store {
  const listeners = LISTENERS.get(store) ?? new Map<string, Ears>()
  LISTENERS.set(store, listeners)
  return changeStore(store, {
    listen(worker, ears) {
      listeners.set(worker, ears)
      return store.listen(worker, ears)
    },
    async commit(commit) {
      for (const [worker, text] of commit.told ?? []) listeners.get(worker)?.replies(text)
      return store.commit(commit)
    },
  })
}

/** Of every process of a simulation. */
const LISTENERS = new WeakMap<Store, Map<string, Ears>>()

/** Counters are incremented at each sending, beside the commit: those of a sending that came to nothing stay. */
function withIncrements(store: Store): Store {
  const extra = new Map<string, number>()
  return wrapped(store, async (commit) => {
    const added = addedBy(commit)
    const key = countersKey(commit.shard)
    const values = (await store.read(commit.shard, [{ read: 'hash', key }]))?.[0] as ReadonlyMap<string, string>
    const incremented = (account: string): string => {
      const { n } = JSON.parse(values.get(account) ?? '{"n":0}') as { n: number }
      return JSON.stringify({ n: n + (extra.get(account) ?? 0) + (added.get(account) ?? 0) })
    }
    const ops = commit.ops.map((op) => (op.key === key ? { ...op, args: pairs(op, incremented) } : op))
    const verdict = await store.commit({ ...commit, ops })
    for (const [account, n] of added) extra.set(account, verdict.kind === 'ok' ? 0 : (extra.get(account) ?? 0) + n)
    return verdict
  })
}

/** Messages that a commit adds, by account. */
function addedBy({ ops }: Commit): Map<string, number> {
  const added = new Map<string, number>()
  for (const { key, write } of ops) {
    const account = key.split(':log:')[1]
    if (write === 'XADD' && account !== undefined) added.set(account, (added.get(account) ?? 0) + 1)
  }
  return added
}

function pairs({ args }: Op, countOf: (field: string) => string): string[] {
  return args.map((arg, place) => (place % 2 === 1 ? countOf(String(args[place - 1])) : String(arg)))
}

function wrapped(store: Store, commit: (commit: Commit) => ReturnType<Store['commit']>): Store {
  return changeStore(store, { commit })
}

/** Performs when a claim is sent, not when it is confirmed. */
class EagerLoop extends CommitLoop {
  protected override sending(plan: Plan): void {
    for (const claim of plan.claims)
      this.world.pump.start(claim, {
        shard: this.id,
        report: (done, outcome) => this.world.reported(this.id, done, outcome),
      })
  }

  protected override startClaims(claims: readonly Claim[]): void {
    for (const claim of claims) this.world.pump.release(claim.lane)
  }
}

/** Believes its reads. */
class BareLoop extends CommitLoop {
  protected override laidFor(_batch: Batch): readonly Laid[] {
    return []
  }
}

/** Forgets a commit's writes when it is confirmed, though a read may be older. */
class ForgetfulLoop extends CommitLoop {
  protected override keepLaid(_laid: Laid): void {
    this.laid = []
  }
}

/** Decides while a commit is in flight, and answers at once what writes nothing. */
class HastyLoop extends CommitLoop {
  protected override mayDecide(): boolean {
    if (this.inFlight === null) return true
    const batch = this.next
    if (batch !== null && !batch.reading) this.answerEmpty(batch)
    return false
  }

  private answerEmpty(batch: Batch): void {
    const flight = this.inFlight!
    const laid = [...this.laidFor(batch), { seq: this.meta.seq + 1, overlay: flight.plan.overlay }]
    const view = (staged: Overlay) => new FactView(batch.rounds, laid, staged, this.knownFields())
    const context = { ...this.batchContext(batch), view }
    const decided = decideBatch(batch.works, context)
    for (const work of batch.works) work.needs = 0
    if (decided.kind === 'need') return
    if (decided.plan.ops.length > 0) {
      this.discard(decided.plan)
      return
    }
    this.next = null
    this.finished(decided.plan)
  }
}

/** Lays a commit's writes over hashes, and over nothing else. */
class HashLoop extends CommitLoop {
  protected override laidFor(batch: Batch): readonly Laid[] {
    return super.laidFor(batch).map(({ seq, overlay }) => ({ seq, overlay: new HashOverlay(overlay) }))
  }
}

class HashOverlay extends Overlay {
  private readonly whole: Overlay

  constructor(whole: Overlay) {
    super()
    this.whole = whole
  }

  override field(key: string, field: string): string | null | undefined {
    return this.whole.field(key, field)
  }

  override hash(key: string, below: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    return this.whole.hash(key, below)
  }
}

/** Goes on in a serial lane whatever another worker has claimed there. */
class ImpatientLoop extends CommitLoop {
  constructor(id: number, world: ShardWorld, host: LoopHost) {
    super(id, world, host)
    this.items.standing.set = () => this.items.standing
  }
}

/** Remembers of a lane what was read, and not what was written since. */
class StaleLoop extends CommitLoop {
  constructor(id: number, world: ShardWorld, host: LoopHost) {
    super(id, world, host)
    const { fields } = this.reader
    const note = fields.note.bind(fields)
    fields.note = (noted) => note({ ...noted, ops: noted.ops.filter(({ key }) => !key.includes(':due:')) })
  }
}

/** Goes on where the store has lost commits as if nothing had been. */
class SilentLoop extends CommitLoop {
  override noteLoss(): void {
    // Nothing is said.
  }
}

/** Whatever befell the process: while heartbeats are answered, what it has is its own. */
class ForgivingFence extends Fence {
  override look({ shard }: Pass): FenceState {
    return super.look(this.passOf(shard))
  }
}

/** Goes by the last answered heartbeat, for as long as others believe in it. */
class HopefulFence extends Fence {
  override beatSent(): number {
    const atMs = super.beatSent()
    this.cells[2] = 0n
    return atMs
  }

  override commitSent(): void {
    // Nothing waits.
  }

  override look(pass: Pass): FenceState {
    const state = super.look(pass)
    return state === 'held' && this.cells[0] !== 0n ? 'open' : state
  }
}

/** Keeps what a batch made of the states, whatever became of its commit. */
class StubbornLoop extends CommitLoop {
  protected override discard(plan: Plan): void {
    super.discard(plan)
    this.reader.memory.take(plan.draft, this.world.clock.nowMs())
  }
}
