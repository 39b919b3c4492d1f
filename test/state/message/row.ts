/** row - the rows of a message are read and written under one set of keys, in writes of a bounded size. */
import t from 'tap'
import type { Facts } from '../../../cluster/behaviour.ts'
import { entryIdOf, shortId } from '../../../cluster/id.ts'
import { headKey, logKey, recalledKey, statusKey } from '../../../src/state/keys.ts'
import { packLogEntry } from '../../../src/state/message/log-entry.ts'
import { deleteOps, MessageRows } from '../../../src/state/message/row.ts'

const SERVER = '01926d3c-0000-7000-8000-000000000001'
const MESSAGE = '01926d3c-aaaa-7000-8000-000000000001'
const SEGMENT = '202611-0-1'
const [LOG, HEAD, STATUS] = [logKey, headKey, statusKey].map((key) => key(1, SERVER, SEGMENT)) as [
  string,
  string,
  string,
]
const ENTRY = {
  contentId: 'c-0',
  streamId: null,
  sender: 1,
  recipients: [2, 3],
  kinds: ['to', 'cc'],
  tagHash: null,
  source: 'a',
} as const

const rows = new MessageRows(1, { serverId: SERVER, segment: SEGMENT })
const short = shortId(MESSAGE)

t.test('all reads and writes of a message use three keys of its segment', async (t) => {
  const entryId = entryIdOf(MESSAGE)
  t.same(rows.entryFact(MESSAGE), { read: 'range', key: LOG, from: entryId, to: entryId, count: 1 })
  t.same(rows.newestFact({ from: '-', to: '+', count: 2 }), { read: 'newest', key: LOG, from: '-', to: '+', count: 2 })
  t.same(rows.headsFact([short]), { read: 'fields', key: HEAD, fields: [short] })
  t.same(rows.statusFact({ short, recipient: 1 }), { read: 'fields', key: STATUS, fields: [`${short}.1`] })
  t.same(rows.entryOp(MESSAGE, 'm'), { key: LOG, write: 'XADD', args: [entryId, 'm', 'm'] })
  t.same(rows.headOp(short, 'h'), { key: HEAD, write: 'HSET', args: [short, 'h'] })
  t.same(rows.statusOp({ short, recipient: 0 }, 's'), { key: STATUS, write: 'HSET', args: [short, 's'] })
  t.same(rows.statuses([short]), { key: STATUS, fields: [short] })
  t.same(rows.headPlace(MESSAGE), { key: HEAD, field: short })
})

t.test('what was fetched is found again; a message that has left the log has no entry', async (t) => {
  const fields = new Map([
    [`${HEAD} ${short}`, 'head'],
    [`${STATUS} ${short}.1`, 'status'],
  ])
  const recalled = new Map<string, string>()
  let isAsked = false
  const facts = {
    has: () => isAsked,
    field: (key: string, field: string) => fields.get(`${key} ${field}`) ?? recalled.get(`${key} ${field}`) ?? null,
    range: ({ from }: { from: string }) =>
      from === entryIdOf(MESSAGE) ? [{ id: from, fields: ['m', packLogEntry(ENTRY)] }] : [],
  } as unknown as Facts
  t.equal(rows.head(facts, short), 'head')
  t.equal(rows.status(facts, { short, recipient: 1 }), 'status')
  t.equal(rows.status(facts, { short, recipient: 0 }), null)
  t.same(rows.entry(facts, MESSAGE), ENTRY)
  const gone = MESSAGE.replace('aaaa', 'bbbb')
  t.equal(rows.entry(facts, gone), null)
  t.same(rows.missingEntry(facts, gone), [rows.entryFact(gone)], 'the log is read first')
  isAsked = true
  recalled.set(`${recalledKey(1, SERVER, SEGMENT)} ${shortId(gone)}`, packLogEntry(ENTRY))
  t.same(rows.entry(facts, gone), ENTRY, 'a recalled one is found among those')
})

t.test('many heads and statuses are written in several writes, and removed with the log below them', async (t) => {
  const heads = Array.from({ length: 2_400 }, (_, n) => `h${n}`)
  const changed = rows.changeOps({ heads, statuses: ['a', 'b'] })
  t.same(
    changed.map(({ key, write, args }) => [key, write, args.length]),
    [
      [HEAD, 'HSET', 2_000],
      [HEAD, 'HSET', 400],
      [STATUS, 'HSET', 2],
    ],
  )
  t.same(
    changed.flatMap(({ args }) => args),
    [...heads, 'a', 'b'],
  )
  const removed = rows.removeOps({ heads: ['a'], statuses: [], below: '9-0' })
  t.same(removed, [
    { key: LOG, write: 'XTRIM', args: ['MINID', '9-0'] },
    { key: HEAD, write: 'HDEL', args: ['a'] },
  ])
})

t.test('many fields are removed by several writes', async (t) => {
  const fields = Array.from({ length: 2500 }, (_, index) => String(index))
  const ops = deleteOps('{s001}:x', fields)
  t.same(
    ops.map(({ args }) => args.length),
    [1000, 1000, 500],
  )
  t.same(
    ops.flatMap(({ args }) => args),
    fields,
  )
  t.same(deleteOps('{s001}:x', []), [])
})
