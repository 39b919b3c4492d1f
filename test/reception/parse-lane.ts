/**
 * parse-lane - the order in which mail is parsed: an account whose mail takes long delays no other, and every mail has
 * an outcome.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { PerformedClaim } from '../../cluster/behaviour.ts'
import { makeIds } from '../../cluster/id.ts'
import type { ParseJob, ParseOutcome } from '../../src/actors/inbound/parse-job.ts'
import { makeContents } from '../../src/content/contents.ts'
import { makeFileHome } from '../../src/content/files.ts'
import { makeMailKey } from '../../src/content/mail-key.ts'
import { parseReceivedMail } from '../../src/mail/mime/received-mail.ts'
import { ByteGate } from '../../src/reception/byte-gate.ts'
import { makeParseLane } from '../../src/reception/parse-lane.ts'
import { packMail } from '../../src/reception/parsed-mail.ts'
import type { ReceivedParser } from '../../src/reception/received-parser.ts'
import { freshHead, newObjectId } from '../../src/state/received/content-head.ts'
import { receivedObjectName } from '../../src/state/received/object.ts'
import { parseLane } from '../../src/state/received/parse-item.ts'
import { readParsed } from '../../src/store/received.ts'
import { ringOf } from '../support/world/rings.ts'

const SLOW_MS = 2_100
const ring = ringOf('mail')
const ids = makeIds({ shard: 23, last: '', random: Math.random })
const serverId = ids.next(Date.now())

/** A thread that processes one mail after the other. A mail that orders it takes its time. */
function makeThread(told: string[]): ReceivedParser {
  let end: Promise<unknown> = Promise.resolve()
  return {
    parse(raw) {
      const mail = packMail(parseReceivedMail(Buffer.from(raw)))
      const run = end.then(async () => {
        if (mail.subject?.includes('slow')) await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
        told.push(mail.subject ?? '')
        return mail
      })
      end = run
      return run
    },
    close: async () => undefined,
  }
}

function setUp(t: Test) {
  const root = mkdtempSync(join(tmpdir(), 'sendwright-parse-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  const warn = () => undefined
  const contents = makeContents({ home: makeFileHome(root, { worker: () => 'me' }), room: null, told: warn, warn })
  const told: string[] = []
  const lane = makeParseLane({
    received: { contents, ring },
    freshMails: null,
    parsers: { slow: makeThread(told), fast: makeThread(told) },
    judge: () => ({ isRead: Promise.resolve(), check: Promise.resolve(null) }),
    bytes: new ByteGate(1_000_000),
    secrets: { addressHmac: (_account, address) => address },
    metrics: { parsed: () => undefined },
    random: Math.random,
  })
  const keep = async (accountId: string, subject: string): Promise<ParseJob> => {
    const messageId = ids.next(Date.now())
    const { key, sealed } = makeMailKey(ring)
    const raw = Buffer.from(`From: a@b.example\r\nSubject: ${subject}\r\n\r\n${'x'.repeat(100)}`)
    const head = freshHead({
      objectId: newObjectId(Date.now(), Math.random),
      key: sealed,
      sender: null,
      session: { ip: '::1', helo: 'x' },
    })
    const names = [receivedObjectName(23, serverId, head.objectId)]
    await contents.put({ names, mailKey: key, kind: 'mail', source: [raw], bytesMax: raw.length })
    return { accountId, serverId, segment: '202611-0-1', messageId, sizeBytes: raw.length, head }
  }
  const perform = (job: ParseJob): Promise<ParseOutcome> => {
    const claim = {
      lane: parseLane(job.accountId),
      item: 'i',
      attempt: 1,
      signal: new AbortController().signal,
    } as PerformedClaim
    return lane.perform(job, claim) as Promise<ParseOutcome>
  }
  return { contents, lane, told, keep, perform }
}

t.test(
  'parse-lane: an account whose mail takes long delays the others once, and then only its own mail [inbound.parse]',
  async (t) => {
    const { keep, perform, told, lane } = setUp(t)
    const one = parseLane('one')
    t.ok(lane.room(one) > 4)
    const quick = await Promise.all(Array.from({ length: 4 }, () => keep('one', 'quick')))
    await Promise.all(quick.map(perform))
    const slow = await Promise.all(Array.from({ length: 6 }, (_, n) => keep('one', `slow ${n}`)))
    const other = await keep('two', 'other')
    const all = slow.map(perform)
    await perform(other)
    t.ok(told.length <= 4 + 4 + 1, `${told.length - 5} of the six came before the other account's`)
    const late = await keep('three', 'late')
    // The first four have their turns at once, and come to the thread in any order.
    await Promise.all(all.slice(0, 4))
    const before = told.length
    await perform(late)
    t.ok(told.length <= before + 1, 'what is left of the slow ones is parsed elsewhere')
    await Promise.all(all)
  },
)

t.test('parse-lane: an unreadable mail has an outcome, one without an answer returns [inbound.parse]', async (t) => {
  const { keep, perform, contents } = setUp(t)
  const job = await keep('one', 'there')
  const outcome = await perform(job)
  t.match(outcome, {
    result: 'parsed',
    parsed: { subject: 'there', parseIssue: null, hasText: true, named: { isWhole: true } },
  })
  const parsedId = outcome.result === 'parsed' ? outcome.parsed.parsedId : null
  const parsed = await readParsed({ contents, ring }, { shard: 23, serverId, head: { ...job.head, parsedId } })
  t.match(parsed, { subject: 'there', text: 'x'.repeat(100), attachments: [] })
  const gone = { ...job, head: { ...job.head, objectId: newObjectId(Date.now(), Math.random) } }
  t.match(await perform(gone), { result: 'parsed', parsed: { parseIssue: 'parser_error', parsedId: null } })
  const other = { ...job, head: { ...job.head, key: makeMailKey(ringOf('other')).sealed } }
  t.match(
    await perform(other),
    { result: 'parsed', parsed: { parseIssue: 'parser_error' } },
    'sealed with another secret',
  )
})
