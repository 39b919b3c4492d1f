/** Tests of cluster/shard.ts: the result of each verdict for the askers. */
import { setImmediate as settle } from 'node:timers/promises'
import { test } from 'tap'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { packCommand, packParcel } from '../../../cluster/mailbox/parcel.ts'
import { sliceOf } from '../../../cluster/mailbox/replies.ts'
import { ASKS_MAX } from '../../../cluster/shard/intake.ts'
import type { Verdict } from '../../../cluster/store.ts'
import { Rig, type Script } from '../../support/store/shard-rig.ts'

/** Answers with `verdicts` in turn, then lets commits through. */
function first(...verdicts: Verdict[]): Script {
  return (_commit, apply) => {
    const verdict = verdicts.shift()
    return verdict === undefined ? apply() : Promise.resolve(verdict)
  }
}

test('shard: asks are answered after the commit, in one batch while one is in flight', async (t) => {
  const rig = await new Rig().open()
  const asks = [rig.ask()]
  rig.script = (_commit, apply) => {
    if (asks.length === 1) asks.push(rig.ask(), rig.ask())
    return apply()
  }
  await rig.pass(0)
  t.same(
    asks.map(({ result }) => result),
    [1, 2, 3].map((reply) => ({ kind: 'answer', reply })),
  )
  t.equal(rig.commits.length, 2)
  t.equal(rig.count(), 3)
})

test('shard: what comes in one turn of the loop is one batch, and so is what comes until the batch is decided', async (t) => {
  const rig = await new Rig().open()
  const asks = [rig.ask(), rig.ask()]
  rig.script = async (_commit, apply) => {
    if (asks.length === 2) {
      asks.push(rig.ask())
      await settle() // A batch has begun; it waits for this commit.
      asks.push(rig.ask())
      await settle()
    }
    return apply()
  }
  await rig.pass(0)
  await rig.pass(0)
  t.same(
    asks.map(({ result }) => result),
    [1, 2, 3, 4].map((reply) => ({ kind: 'answer', reply })),
  )
  t.same(
    rig.commits.map(({ note }) => note.split(' ')[0]),
    ['works=2', 'works=2'],
  )
})

test('shard: what answers bring about at once goes with the next commit', async (t) => {
  const rig = await new Rig().open()
  const waiting: { result: unknown }[] = []
  rig.script = async (_commit, apply) => {
    if (waiting.length === 0) waiting.push(rig.ask())
    await settle()
    return apply()
  }
  rig.ask({}, () => waiting.push(rig.ask()))
  await rig.pass(0)
  await rig.pass(0)
  t.same(
    waiting.map(({ result }) => result),
    [2, 3].map((reply) => ({ kind: 'answer', reply })),
  )
  t.same(
    rig.commits.map(({ note }) => note.split(' ')[0]),
    ['works=1', 'works=2'],
  )
})

test('shard: what was not written is decided again and comes true once', async (t) => {
  const verdicts: Verdict[] = [
    { kind: 'late', nowMs: 1_732_000_000_000 },
    { kind: 'clock', nowMs: 1_732_000_000_000 },
    { kind: 'unsent' },
  ]
  for (const verdict of verdicts) {
    const rig = await new Rig().open()
    rig.script = first(verdict)
    const ask = rig.ask()
    await rig.pass(200)
    t.same(ask.result, { kind: 'answer', reply: 1 }, verdict.kind)
    t.equal(rig.commits.length, 2)
    t.equal(rig.count(), 1)
  }
})

test('shard: a verdict that was slow and says the time counts from the sending of its commit', async (t) => {
  for (const kind of ['late', 'clock'] as const) {
    const rig = await new Rig().open()
    const sentAtMs = rig.clock.monotonicMs()
    const atMs = rig.clock.nowMs()
    const set = t.capture(rig.clock, 'set', rig.clock.set)
    rig.script = async (_commit, apply) => {
      if (rig.commits.length > 1) return apply()
      await new Promise<void>((resolve) => rig.clock.after(2_000, resolve))
      return { kind, nowMs: atMs + 10 }
    }
    const ask = rig.ask()
    await rig.pass(2_100)
    t.same(
      set().map(({ args }) => args),
      [[atMs + 10, sentAtMs]],
      kind,
    )
    t.same(ask.result, { kind: 'answer', reply: 1 })
  }
})

test('shard: a commit in doubt is sent again, the same, until there is a verdict', async (t) => {
  for (const happened of [true, false]) {
    const rig = await new Rig().open()
    let sendings = 0
    rig.script = async (_commit, apply) => {
      sendings += 1
      if (sendings > 3) return apply()
      if (sendings === 1 && happened) await apply()
      return sendings === 2 ? { kind: 'refused', reason: 'OOM' } : { kind: 'lost' }
    }
    const ask = rig.ask()
    await rig.pass(60)
    t.equal(ask.result, null, 'nobody knows yet')
    await rig.pass(200)
    t.same(ask.result, { kind: 'answer', reply: 1 })
    t.equal(rig.count(), 1)
    t.equal(new Set(rig.commits.map(({ commitId }) => commitId)).size, 1)
    t.equal(rig.doubts, 1, 'told once, however often it is sent')
  }
})

test('shard: a commit in doubt for half a minute leaves its asks without an answer', async (t) => {
  const rig = await new Rig().open()
  rig.script = () => Promise.resolve({ kind: 'lost' })
  const ask = rig.ask()
  await rig.pass(30_100)
  rig.shard.tick(30_100)
  await rig.pass(0)
  t.same(ask.result, { kind: 'silent' })
})

test('shard: an ask that no commit holds is refused in time, never later', async (t) => {
  const rig = await new Rig().open()
  rig.script = () => Promise.resolve({ kind: 'lost' })
  const sent = rig.ask()
  await rig.pass(0)
  const waiting = rig.ask()
  await rig.pass(1_600)
  rig.shard.tick(0)
  await rig.pass(0)
  t.equal(waiting.result, null, 'the store still answers')
  rig.shard.tick(1_600)
  await rig.pass(0)
  t.same(waiting.result, { kind: 'unavailable' })
  t.equal(sent.result, null, 'only its verdict decides about what was sent')
  rig.script = (_commit, apply) => apply()
  await rig.pass(100)
  t.same(sent.result, { kind: 'answer', reply: 1 })
  t.equal(rig.count(), 1)
})

test('shard: a full store refuses asks for a while', async (t) => {
  const rig = await new Rig().open()
  rig.script = first({ kind: 'refused', reason: 'OOM' })
  const ask = rig.ask()
  await rig.pass(10)
  t.same(ask.result, { kind: 'unavailable' })
  const next = rig.ask()
  await rig.pass(0)
  t.same(next.result, { kind: 'unavailable' })
  await rig.pass(1_100)
  const later = rig.ask()
  await rig.pass(0)
  t.same(later.result, { kind: 'answer', reply: 1 })
})

test('shard: a full store that refuses for long makes no shard stuck', async (t) => {
  const rig = await new Rig().open()
  rig.script = ({ frees }, apply) => (frees ? apply() : Promise.resolve({ kind: 'refused', reason: 'OOM' }))
  const parcelId = newCmdId(rig.clock.nowMs(), () => 0.5)
  const command = { name: 'count', cmdId: 'c', body: {} }
  const said = packParcel(parcelId, [packCommand(command, rig.clock.nowMs() + 15_000)])
  await rig.store.enqueue({ replyTo: 'w', commandsMax: 9, parcels: [{ shard: 0, parcelId, count: 1, said }] })
  rig.shard.bell({ shard: 0, entry: null, before: '' })
  let stuckMs = 0
  for (let ms = 0; ms < 20_000; ms += 250) {
    await rig.pass(250)
    rig.shard.tick(0)
    stuckMs = Math.max(stuckMs, rig.shard.stuckMs(rig.clock.monotonicMs()))
  }
  t.ok(stuckMs < 3_000, `stuck for ${stuckMs} ms at most`)
  t.ok(rig.commits.length > 10, 'it was tried again')
  const found = await rig.store.replies([{ shard: 0, parcelId, slice: sliceOf(parcelId) }])
  t.match(found[0]?.fields, [/unavailable/], 'past its deadline it is passed over, in a full store too')
  t.equal(rig.shard.waiting, 0)
})

test('shard: a reply goes with its commit, and is not told of one that is refused', async (t) => {
  const rig = await new Rig().open()
  const heard: string[] = []
  rig.store.listen('w', { bells() {}, released() {}, joined() {}, replies: (text) => heard.push(text) })
  const verdicts: ((isConfirmed: boolean) => void)[] = []
  rig.script = (_commit, apply) =>
    new Promise((resolve) => {
      const late = { kind: 'late', nowMs: rig.store.nowMs } as const
      verdicts.push((isConfirmed) => resolve(isConfirmed ? apply() : late))
    })
  const parcelId = newCmdId(rig.clock.nowMs(), () => 0.5)
  const said = packParcel(parcelId, [packCommand({ name: 'count', cmdId: 'c', body: {} }, rig.clock.nowMs() + 15_000)])
  await rig.store.enqueue({ replyTo: 'w', commandsMax: 9, parcels: [{ shard: 0, parcelId, count: 1, said }] })
  rig.shard.bell({ shard: 0, entry: null, before: '' })
  await rig.pass(10)
  t.same([verdicts.length, heard], [1, []], 'it is under way')
  verdicts[0]?.(false)
  await rig.pass(10)
  t.same([verdicts.length, heard], [2, []], 'it was refused')
  verdicts[1]?.(true)
  await rig.pass(10)
  t.same(heard, [`${parcelId}/0 [{"kind":"answer","reply":1}]`])
})

test('shard: of a batch that the store refuses, only the command that is odd fails', async (t) => {
  const rig = await new Rig().open()
  const asks = [rig.ask(), rig.ask(), rig.ask({ odd: true }), rig.ask(), rig.ask()]
  await rig.pass(500)
  t.same(
    asks.map(({ result }) => result?.kind),
    ['answer', 'answer', 'fault', 'answer', 'answer'],
  )
  t.equal(rig.count(), 4)
  t.equal(rig.shard.running, true)
})

test('shard: a store that has lost commits makes it start anew; its asks go along', async (t) => {
  const rig = await new Rig().open()
  rig.ask()
  await rig.pass(0)
  rig.script = first({ kind: 'conflict', seq: 0 })
  const ask = rig.ask()
  await rig.pass(0)
  t.same([rig.gone, rig.forwarded.length, ask.result], [1, 1, null])
  t.equal(rig.shard.running, false)
})

test('shard: how many commits the store has lost, and since when, is told once', async (t) => {
  const rig = await new Rig().open()
  const times: number[] = []
  for (let n = 0; n < 3; n += 1) {
    rig.ask()
    await rig.pass(1_000)
    times.push(rig.store.nowMs - 1_000)
  }
  rig.script = first({ kind: 'conflict', seq: 1 })
  rig.ask()
  await rig.pass(0)
  rig.shard.noteLoss(0)
  t.same(rig.lost, [{ shard: 0, commits: 2, sinceMs: times[1] }])
  const other = await new Rig().open()
  other.ask()
  await other.pass(0)
  other.shard.noteLoss(1)
  t.same(other.lost, [], 'a store that has everything has lost nothing')
  other.shard.noteLoss(0, rig.shard.knownCommits)
  t.same(other.lost, [], 'what was told of an object before is not told of the next one')
})

test('shard: a torn store stops it for good', async (t) => {
  for (const verdict of [
    { kind: 'torn', reason: 'x' },
    { kind: 'conflict', seq: 9 },
  ] as const) {
    const rig = await new Rig().open()
    rig.script = first(verdict)
    const ask = rig.ask()
    await rig.pass(0)
    t.same(ask.result, { kind: 'silent' })
    t.equal(rig.shard.halted, true)
    t.equal(rig.halted.length, 1)
    const next = rig.ask()
    await rig.pass(0)
    t.same(next.result, { kind: 'unavailable' })
  }
})

test('shard: fenced, it learns from the next owner whether its commit happened', async (t) => {
  for (const happened of [true, false]) {
    const rig = await new Rig().open()
    rig.script = async (_commit, apply) => {
      if (happened) await apply()
      await rig.store.acquire({ shard: 0, sawToken: rig.shard.token, newToken: '2:other', worker: 'other' })
      return { kind: 'fenced' }
    }
    const ask = rig.ask()
    await rig.pass(0)
    t.same(ask.result, happened ? { kind: 'answer', reply: 1 } : null)
    t.same([rig.gone, rig.forwarded.length], [1, happened ? 0 : 1])
  }
})

test('shard: fenced without a word of the next owner, it stays silent', async (t) => {
  const rig = await new Rig().open()
  rig.script = first({ kind: 'fenced' })
  const ask = rig.ask()
  await rig.pass(4_000)
  t.same(ask.result, { kind: 'silent' })
  t.same([rig.gone, rig.forwarded.length], [1, 0])
})

test('shard: closed, it ends what is here, gives the shard back and takes nothing more', async (t) => {
  const rig = await new Rig().open()
  const ask = rig.ask()
  const closed = rig.shard.close()
  await rig.pass(0)
  await closed
  t.same(ask.result, { kind: 'answer', reply: 1 })
  t.equal((await rig.store.metas([0]))?.[0]?.owner, '')
  const next = rig.ask()
  await rig.pass(0)
  t.same(next.result, { kind: 'unavailable' })
})

test('shard: what writes nothing waits for the commit before it, and is not committed', async (t) => {
  const rig = await new Rig().open()
  let release = (): void => undefined
  rig.script = (_commit, apply) =>
    new Promise((resolve) => {
      release = () => void apply().then(resolve)
    })
  const write = rig.ask()
  await rig.pass(0)
  const read = rig.ask({ reads: true })
  await rig.pass(100)
  t.equal(read.result, null)
  release()
  await rig.pass(0)
  t.same(
    [write.result, read.result],
    [
      { kind: 'answer', reply: 1 },
      { kind: 'answer', reply: 1 },
    ],
  )
  t.equal(rig.commits.length, 1)
})

test('shard: more asks than it may hold are refused at once', async (t) => {
  const rig = await new Rig().open()
  rig.script = () => new Promise(() => undefined)
  const asks = Array.from({ length: ASKS_MAX + 200 }, () => rig.ask())
  await rig.pass(0)
  t.ok(asks.at(-1)?.result?.kind === 'unavailable')
  t.equal(asks[0]?.result, null)
})

test('shard: a signal is said once its commit is confirmed, and not for a refused one', async (t) => {
  const rig = await new Rig().open()
  rig.script = first({ kind: 'refused', reason: 'OOM' })
  rig.ask({ says: 'refused' })
  await rig.pass(0)
  t.same(rig.store.signals, [])
  await rig.pass(2_000)
  rig.ask({ says: 'one' })
  t.same(rig.store.signals, [])
  await rig.pass(0)
  t.same(rig.store.signals, [{ topic: 'count', text: 'one' }])
})

test('shard: a store that does not answer is asked for outcomes with each tick, not without a pause', async (t) => {
  const rig = await new Rig().open()
  rig.isDeaf = true
  rig.looks = 0
  rig.shard.workerDied()
  await rig.pass(1_000)
  t.ok(rig.looks < 10, `asked ${rig.looks} times without a tick`)
  for (let n = 0; n < 4; n += 1) rig.shard.tick(0)
  await rig.pass(0)
  t.ok(rig.looks >= 2 && rig.looks < 20, 'each tick asks again')
  rig.isDeaf = false
  rig.shard.tick(0)
  await rig.pass(0)
  const ask = rig.ask()
  await rig.pass(0)
  t.same(ask.result, { kind: 'answer', reply: 1 }, 'and it goes on')
})
