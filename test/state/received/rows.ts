/** Rows of received mail: a packed row is unpacked unchanged, whatever it holds, and is as short as possible. */
import t from 'tap'
import { withSum } from '../../../cluster/sum.ts'
import { HARD_ISSUES, SOFT_ISSUES, SPF_VERDICTS } from '../../../schemas/inbound.ts'
import {
  type ContentHead,
  freshHead,
  headSlice,
  newObjectId,
  packContentHead,
  unpackContentHead,
} from '../../../src/state/received/content-head.ts'
import { packReceivedEntry, unpackReceivedEntry } from '../../../src/state/received/entry.ts'
import { receivedObjectName, rowOfObject } from '../../../src/state/received/object.ts'
import { formatParseItem, readParseItem } from '../../../src/state/received/parse-item.ts'
import {
  freshStanding,
  packStanding,
  type ReceivedStanding,
  unpackStanding,
} from '../../../src/state/received/standing.ts'

const ID = '01a1f8d8-8300-7017-8000-0e7faee555a7'
const OTHER = '01a1f8d8-8300-7017-8000-0e7faee555a8'
const AT = Date.UTC(2026, 10, 20, 12)

t.test('received entry: packed and back', async (t) => {
  for (const entry of [
    { streamId: ID, sender: 0, plusHash: null },
    { streamId: ID, sender: 7, plusHash: null },
    { streamId: ID, sender: 0, plusHash: 'abcdefgh' },
  ])
    t.same(unpackReceivedEntry(packReceivedEntry(entry)), entry)
  t.ok(packReceivedEntry({ streamId: ID, sender: 1_000, plusHash: null }).length <= 39)
})

t.test('received standing: packed and unpacked, with every value of the contract', async (t) => {
  const fresh = freshStanding({ sizeBytes: 1_000, mailboxHash: null, spelledId: null })
  t.equal(packStanding(fresh, AT), withSum('[1000]'))
  const full: ReceivedStanding = {
    sizeBytes: 36_700_160,
    isParsed: true,
    hasText: true,
    hasHtml: true,
    attachmentCount: 100,
    parseIssue: null,
    authentication: {
      spf: 'pass',
      spfHelo: 'none',
      dkim: 'pass',
      dmarc: 'fail',
      dmarcPolicy: 'quarantine',
      arc: 'none',
    },
    checkedAtMs: AT + 300,
    mailboxHash: '0',
    spelledId: ID.toUpperCase(),
    from: 12,
  }
  for (const parseIssue of [null, ...HARD_ISSUES, ...SOFT_ISSUES])
    for (const spf of SPF_VERDICTS) {
      const one = { ...full, parseIssue, authentication: { ...full.authentication, spf } }
      t.same(unpackStanding(packStanding(one, AT), AT), one)
    }
  const atOnce = { ...full, checkedAtMs: AT }
  t.equal(
    unpackStanding(packStanding(atOnce, AT), AT).checkedAtMs,
    AT + 1,
    'what was checked at once is told apart from what was not',
  )
})

t.test('content head: packed and back', async (t) => {
  const fresh = freshHead({ objectId: 'o', key: 'k', sender: null, session: { ip: '::1', helo: '' } })
  const full: ContentHead = {
    objectId: 'o',
    key: 'k',
    parsedId: 'p',
    sender: 'a@b.example',
    fromAddress: 'c@d.example',
    fromName: '0',
    subject: '',
    dateMs: -1,
    named: { hashes: 'abcdefgh', isWhole: false },
    session: null,
  }
  for (const head of [fresh, full, { ...full, dateMs: 0, named: { hashes: '', isWhole: false } }])
    t.same(unpackContentHead(packContentHead(head)), head)
})

t.test('received object: its name leads to the rows that may name it, and to no others', async (t) => {
  const objectId = newObjectId(AT, Math.random)
  const name = receivedObjectName(23, ID, objectId)
  t.match(name, /^023\/in\/20261120\//)
  t.same(rowOfObject(name), { serverId: ID, objectId, slices: ['20261120:7', '20261120:8', '20261120:9'] })
  const late = Date.UTC(2026, 10, 20, 23, 59)
  t.same(rowOfObject(receivedObjectName(23, ID, newObjectId(late, Math.random)))?.slices, [
    '20261120:e',
    '20261120:f',
    '20261121:0',
  ])
  t.equal(headSlice(AT), '20261120:8')
  for (const other of ['023/out/20261120/x-0.body', '023/in/20261120/x', 'x', '', '023/in/20261120/../../x'])
    t.equal(rowOfObject(other), null)
})

t.test('parse item: packed and back', async (t) => {
  const place = { serverId: ID, segment: '202611-0-1', messageId: OTHER }
  t.same(readParseItem(formatParseItem(place)), place)
})
