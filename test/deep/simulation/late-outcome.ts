/** Tests of observer.ts: an attempt may follow an accepted one if the outcome came after the end of the claim. */
import { test } from 'tap'
import { formatClaim } from '../../../cluster/items/claim.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { packStaged } from '../../../cluster/mailbox/staged.ts'
import { LASTING, Observer, type Performance } from '../../simulation/observer.ts'
import { SimStore } from '../../simulation/sim-store.ts'

const ITEM = '0a0.018bcfe5-6c89-7003-8000-0b0fcaf11000'
const LANE = `${LASTING}y`
const UNTIL_MS = 90_000
const APART_MS = 1_000
const FIRST: Performance = { item: ITEM, attempt: 1, worker: 'one', lane: LANE }

for (const [toldAtMs, name, violations] of [
  [UNTIL_MS + 1_900, 'came after the end of its claim', 0],
  [UNTIL_MS - APART_MS - 1, 'lay in the store when its claim ended', 1],
  [null, 'never came', 1],
] as const) {
  test(`late outcome: a second taking if the first outcome ${name}`, async (t) => {
    const { observer, told, setTime } = await delivered()
    if (toldAtMs !== null) {
      setTime(toldAtMs)
      await told()
    }
    setTime(UNTIL_MS + 5_000)
    takeAgain(observer, false)
    t.equal(observer.violations.length, violations)
  })
}

test('late outcome: a second taking while the first process hands its outcome in', async (t) => {
  const { observer, setTime } = await delivered()
  setTime(UNTIL_MS - APART_MS - 1)
  takeAgain(observer, true)
  t.equal(observer.violations.length, 1, 'not before the claim ends')
  setTime(UNTIL_MS)
  observer.takes(FIRST, () => true)
  takeAgain(observer, true)
  t.equal(observer.violations.length, 1)
})

function takeAgain(observer: Observer, isTelling: boolean): void {
  const about = { apartMs: APART_MS, isTelling }
  observer.takes({ ...FIRST, attempt: 2, worker: 'two' }, (earlier) => observer.wasToldTooLate(ITEM, earlier, about))
}

/** An item that a worker has delivered under a claim until `UNTIL_MS`, in a store whose time the test sets. */
async function delivered() {
  const base = new SimStore()
  const setTime = (ms: number): void => {
    base.nowMs = ms
  }
  const observer = new Observer(
    () => base.nowMs,
    () => base.nowMs,
  )
  const store = observer.watch(base)
  setTime(1_000)
  await store.acquire({ shard: 0, sawToken: '', newToken: '1:one', worker: 'one' })
  const row = { worker: 'one', lane: LANE, attempt: 1, untilMs: UNTIL_MS, claims: 1 }
  const verdict = await store.commit({
    shard: 0,
    token: '1:one',
    seq: 0,
    commitId: '1:one:1',
    nowMs: base.nowMs,
    deadlineMs: 0,
    lid: '',
    firstEntryId: '',
    cursor: '',
    outcomesCursor: '',
    frees: false,
    note: '',
    ops: [{ key: claimsKey(0), write: 'HSET', args: [ITEM, formatClaim(row)] }],
  })
  if (verdict.kind !== 'ok') throw new Error(verdict.kind)
  observer.takes(FIRST, () => false)
  const body = packStaged({ body: { lane: LANE, item: ITEM, attempt: 1, current: false, outcome: null } })
  return { observer, setTime, told: () => store.handIn({ shard: 0, cmdId: 'told', body }) }
}
