/** stores - stores that err: wrapped around the one in memory, each in one way. */
import type { Fact, Op } from '../../../cluster/behaviour.ts'
import { countersKey, dueKey, mailboxKey, outcomesKey } from '../../../cluster/keyspace.ts'
import { firstKept } from '../../../cluster/mailbox/cursor.ts'
import { type Commit, changeStore, type Receivers, type Store } from '../../../cluster/store.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'

/** Reads of outcomes that find nothing. */
const LATE_READS = 4
/** How far a clock is ahead. */
const AHEAD_MS = 4_000
/** Commits before a cursor is written. */
const CURSOR_LATE = 3

/** The store accepts a commit with any sequence number, even one that it already has. */
export function withoutSeqCheck(store: Store): Store {
  let sendings = 0
  return wrapped(store, async (commit) => {
    const seq = (await store.metas([commit.shard]))?.[0]?.seq ?? commit.seq
    sendings += 1
    return store.commit(seq === commit.seq ? commit : { ...commit, seq, commitId: `${commit.commitId}:${sendings}` })
  })
}

/** The store accepts a commit from any worker, whoever holds the shard. */
export function withoutTokenCheck(store: Store): Store {
  return wrapped(store, async (commit) => {
    const token = (await store.metas([commit.shard]))?.[0]?.token ?? commit.token
    return store.commit({ ...commit, token })
  })
}

/**
 * The cursor is written after the commit that executed the entries, together with the next commit, and their replies
 * leave no earlier.
 */
export function withCursorOutside(store: Store): Store {
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
export function withOutcomesCursorOutside(store: Store): Store {
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

/** A worker that takes a shard reads no outcomes at first. */
export function withOutcomesLate(store: Store): Store {
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
export function withLostReplies(store: Store): Store {
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

/** A joining worker meets no other worker. */
export function withoutMeeting(store: Store): Store {
  return changeStore(store, {
    async heartbeat(request) {
      const beat = await store.heartbeat(request)
      const { isComing } = request.record
      return beat.kind === 'ok' && isComing === true ? { ...beat, workers: new Map<string, string>() } : beat
    },
  })
}

/** A joining worker sees the living workers, and none of them sees it. */
export function withSecretLooks(store: Store): Store {
  return changeStore(store, {
    async heartbeat(request) {
      const seen = request.record.isComing === true ? await store.look([]) : null
      return seen === null ? store.heartbeat(request) : { kind: 'ok', nowMs: 0, workers: seen.workers }
    },
  })
}

/** The messages of a commit are sent when it arrives, whatever its result. */
export function withLoudCommits(store: Store): Store {
  const listeners = LISTENERS.get(store) ?? new Map<string, Receivers>()
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

/** A commit whose answer was lost counts as one that was not done. */
export function withoutDoubt(store: Store): Store {
  return wrapped(store, async (commit) => {
    const verdict = await store.commit(commit)
    return verdict.kind === 'lost' ? { kind: 'late', nowMs: commit.nowMs } : verdict
  })
}

/** A read that failed counts as one that found nothing. */
export function withEmptyReads(store: Store): Store {
  const empty = ({ read }: Fact) => (read === 'hash' ? new Map() : read === 'score' || read === 'value' ? null : [])
  return changeStore(store, { read: async (shard, facts) => (await store.read(shard, facts)) ?? facts.map(empty) })
}

/** Whether the deadline of an ask has passed is judged by a clock that is ahead. */
export function withHastyClocks(store: Store): Store {
  return changeStore(store, {
    async replies(parcels) {
      const found = await store.replies(parcels)
      return found.map((one) => one && { ...one, nowMs: one.nowMs + AHEAD_MS })
    },
  })
}

/** The lower bound of a lane stays when an item is placed before it. */
export function withoutLowerBounds(store: Store): Store {
  return wrapped(store, (commit) => {
    const ops = commit.ops.filter(({ key, args }) => key !== dueKey(commit.shard) || args[0] !== 'LT')
    return store.commit({ ...commit, ops })
  })
}

/** Every second outcome is acknowledged before it is stored, and is lost. */
export function withHastyHandIns(store: Store): Store {
  let handedIn = 0
  return changeStore(store, {
    async handIn(request) {
      handedIn += 1
      return handedIn % 2 === 0 || store.handIn(request)
    },
  })
}

/** Published replies of a parcel come in the reverse order of its commands. */
export function withMixedReplies(store: Store): Store {
  const mixed = (line: string): string => {
    const list = line.indexOf(' ') + 1
    return line.slice(0, list) + JSON.stringify((JSON.parse(line.slice(list)) as unknown[]).reverse())
  }
  return wrapped(store, (commit) => {
    const told = [...(commit.told ?? [])].map(
      ([worker, text]) => [worker, text.split('\n').map(mixed).join('\n')] as const,
    )
    return store.commit({ ...commit, told: new Map(told) })
  })
}

/** Shared by all processes of a simulation. */
const LISTENERS = new WeakMap<Store, Map<string, Receivers>>()

/** Counters are incremented at each sending, outside the commit, so the increments of a failed sending remain. */
export function withIncrements(store: Store): Store {
  const extra = new Map<string, number>()
  return wrapped(store, async (commit) => {
    const added = addedBy(commit)
    const key = countersKey(commit.shard)
    const values = (await store.read(commit.shard, [{ read: 'hash', key }]))?.[0] as ReadonlyMap<string, string>
    const incremented = (account: string): string => {
      const { n } = JSON.parse(withoutSum(values.get(account) ?? '{"n":0}', 'counters')) as { n: number }
      return withSum(JSON.stringify({ n: n + (extra.get(account) ?? 0) + (added.get(account) ?? 0) }))
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
