/**
 * scans - an account's searches: two at once, a few that wait, rows that are spent and refilled. Others are served.
 */
import t from 'tap'
import type { FactValue } from '../../cluster/behaviour.ts'
import type { EdgeRequest } from '../../src/http/request.ts'
import type { Answer } from '../../src/http/respond.ts'
import { ROWS_MAX, ROWS_PER_SECOND, SCANS_AT_ONCE, Scans } from '../../src/http/scans.ts'
import type { Reader } from '../../src/views/key.ts'

type Request = EdgeRequest<{ readonly accountId: string }>

/** A search that reads once, which `answer` answers, over a fixed clock. */
function makeSearch() {
  const clock = { nowMs: 0 }
  const reads: ((rows: number) => void)[] = []
  const read = (() =>
    new Promise<readonly FactValue[]>((resolve) =>
      reads.push((rows) => resolve([Array.from({ length: rows }, () => '')])),
    )) as unknown as Reader
  const handle = new Scans(() => clock.nowMs).limit<Request, { read: Reader }>(
    ({ read }) =>
      async () => {
        await read(0, [])
        return { status: 200 }
      },
    { read },
  )
  const search = async (accountId = 'a') => (await handle({ key: { accountId } } as Request)) as { status: number }
  return { clock, reads, search }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))
const statusOf = async (answers: readonly Promise<{ status: number }>[]) =>
  (await Promise.all(answers)).map(({ status }) => status)

t.test('scans: two of an account read at once, others wait, more are refused; other accounts read', async (t) => {
  const { reads, search } = makeSearch()
  const first = Array.from({ length: SCANS_AT_ONCE + 20 }, () => search())
  const refused = await search()
  t.equal(refused.status, 429)
  await settled()
  t.equal(reads.length, SCANS_AT_ONCE)
  const other = search('b')
  await settled()
  t.equal(reads.length, SCANS_AT_ONCE + 1)
  while (reads.length > 0) {
    for (const answer of reads.splice(0)) answer(1)
    await settled()
  }
  t.same(new Set(await statusOf([...first, other])), new Set([200]))
})

t.test('scans: an account that has read all its rows waits until they are refilled', async (t) => {
  const { clock, reads, search } = makeSearch()
  const spend = async (rows: number) => {
    const answer = search()
    await settled()
    reads.shift()?.(rows)
    return (await answer) as Answer & { status: number; headers?: Record<string, string> }
  }
  t.equal((await spend(ROWS_MAX + 2 * ROWS_PER_SECOND)).status, 200, 'a search is never cut off')
  const refused = await spend(1)
  t.match(refused, { status: 429, text: '429 Too Many Requests' })
  t.equal(refused.headers?.['Retry-After'], '3', 'whole seconds, rounded up')
  clock.nowMs = 2_000
  t.equal((await spend(1)).status, 429)
  clock.nowMs = 2_100
  t.equal((await spend(1)).status, 200)
  clock.nowMs = 1_000_000
  t.equal((await spend(ROWS_MAX - 10)).status, 200)
  t.equal((await spend(10)).status, 200, 'full, never more than full')
  t.equal((await spend(1)).status, 429)
})
