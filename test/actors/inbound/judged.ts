/** judged - later rounds of judging: when they are due, what they change, and that a deleted message stays deleted. */
import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { type JudgeOutcome, judgeOutcome, prepareJudge } from '../../../src/actors/inbound/judged.ts'
import type { ParseResult } from '../../../src/actors/inbound/parse-job.ts'
import { parseOutcome, prepareParse } from '../../../src/actors/inbound/parsed.ts'
import { receive } from '../../../src/actors/inbound/receive.ts'
import { createStream } from '../../../src/actors/server/create-stream.ts'
import type { Authentication } from '../../../src/mail/authenticate/authentication.ts'
import { MINUTE_MS } from '../../../src/state/calendar.ts'
import { receivedStateKey } from '../../../src/state/keys.ts'
import { contentHeadKey, newObjectId, unpackContentHead } from '../../../src/state/received/content-head.ts'
import { readJudgeItem } from '../../../src/state/received/judge-item.ts'
import { unpackStanding } from '../../../src/state/received/standing.ts'
import { LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)
/** The first round. */
const FIRST_MS = NOW_MS + 700
const SESSION = { ip: '192.0.2.1', helo: 'mx.a.example' }
const GOOD: Authentication = {
  spf: 'pass',
  spfHelo: 'none',
  dkim: 'pass',
  dmarc: 'pass',
  dmarcPolicy: null,
  arc: 'none',
}
const AWAY: Authentication = { ...GOOD, spf: 'temperror', dkim: 'temperror', dmarc: 'temperror' }
const PARSED: ParseResult = {
  parsedId: null,
  hasText: true,
  hasHtml: false,
  attachmentCount: 0,
  parseIssue: null,
  from: null,
  subject: null,
  dateMs: null,
  named: { hashes: '', isWhole: true },
  check: null,
}

/** A message that was received, parsed, and judged so for the first time. */
function begin(first: Authentication | null) {
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY }
  const made = world.run(createStream, { ...order, streamKind: 'inbound', name: 'Support' })
  if (made.kind !== 'stream') throw new Error(made.kind)
  const received = world.run(receive, {
    accountId,
    sizeBytes: 700,
    sender: null,
    session: SESSION,
    key: 'sealed',
    recipients: [
      {
        serverId: live.serverId,
        streamId: made.stream.streamId,
        spelledId: null,
        mailboxHash: null,
        plusHash: null,
        objectId: newObjectId(NOW_MS, () => world.random()),
      },
    ],
  })
  if (received.kind !== 'received') throw new Error(received.why)
  const messageId = received.messageIds[0] as string
  const itemOf = (lane: string) => world.deliveries().find((one) => one.lane === `${lane}/${accountId}`)
  const parsing = world.claim(prepareParse, itemOf('parse')!)!
  const segment = parsing.job.segment
  const check = first && { authentication: first, checkedAtMs: FIRST_MS }
  world.end(parseOutcome, parsing, { result: 'parsed', parsed: { ...PARSED, check } })
  const stateKey = receivedStateKey(world.shard, live.serverId, segment)
  const headKey = contentHeadKey(world.shard, live.serverId, messageId)
  return {
    world,
    stateKey,
    headKey,
    short: shortId(messageId),
    round: () => itemOf('judge'),
    standing: () => unpackStanding(world.hash(stateKey).get(shortId(messageId)) as string, NOW_MS),
    session: () => unpackContentHead(world.hash(headKey).get(shortId(messageId)) as string).session,
    /** Looks once more, when it is due. */
    look(outcome: JudgeOutcome | null) {
      const due = itemOf('judge')!
      world.nowMs = due.atMs
      const claim = world.claim(prepareJudge, due)
      if (claim !== null) world.end(judgeOutcome, claim, outcome)
      return claim
    },
  }
}

const judged = (authentication: Authentication, checkedAtMs = FIRST_MS): JudgeOutcome => ({
  check: { authentication, checkedAtMs },
})
const minutesOf = (due: { readonly atMs: number } | undefined): number | undefined =>
  due && (due.atMs - FIRST_MS) / MINUTE_MS

t.test('judged: if nothing is missing there is no further round, and the session is deleted', async (t) => {
  for (const first of [GOOD, { ...GOOD, dkim: 'permerror', arc: 'fail' } as const, null]) {
    const { round, session, standing } = begin(first)
    t.equal(round(), undefined)
    t.equal(session(), null)
    t.equal(standing().checkedAtMs, first === null ? null : FIRST_MS)
  }
})

t.test('judged: rounds after one, five and ten minutes, then none [inbound.authentication.rounds]', async (t) => {
  const { round, session, standing, look } = begin(AWAY)
  const seen: (number | undefined)[] = []
  for (let number = 2; number <= 4; number += 1) {
    seen.push(minutesOf(round()))
    t.equal(readJudgeItem(round()!.item).round, number)
    t.same(session(), SESSION)
    t.match(look(judged(AWAY, FIRST_MS + number))?.job, { sizeBytes: 700, head: { session: SESSION } })
    t.equal(standing().checkedAtMs, FIRST_MS + number)
  }
  t.same(seen, [1, 5, 10])
  t.equal(round(), undefined)
  t.equal(session(), null)
  t.same(standing().authentication, AWAY)
})

t.test('judged: the result is stored, and no event follows [inbound.authentication.rounds]', async (t) => {
  const { world, round, session, standing, look } = begin(AWAY)
  look(judged({ ...GOOD, dkim: 'temperror' }))
  t.same(standing().authentication, { ...GOOD, dkim: 'temperror' })
  t.equal(minutesOf(round()), 5)
  look(judged({ ...AWAY, spf: 'fail', dkim: 'fail' }))
  t.same(standing().authentication, { ...GOOD, dkim: 'fail' }, 'SPF was told before')
  t.equal(round(), undefined)
  t.equal(session(), null)
  t.same(
    world.ops.map(({ write }) => write),
    ['HSET', 'HSET'],
    'two rows, no event',
  )
})

t.test('judged: a round that could not look is a round too', async (t) => {
  const { round, standing, look } = begin(AWAY)
  look({ check: null })
  t.equal(minutesOf(round()), 5)
  look(null)
  t.equal(minutesOf(round()), 10)
  look(judged(GOOD, FIRST_MS + 1))
  t.same([standing().authentication, standing().checkedAtMs, round()], [GOOD, FIRST_MS + 1, undefined])
})

t.test('judged: nothing of a message that has left comes back', async (t) => {
  for (const key of ['stateKey', 'headKey'] as const) {
    const before = begin(AWAY)
    before.world.keys.delete(before[key])
    t.equal(before.look(judged(GOOD)), null, 'it is not looked at')
    const { world, round, [key]: name } = begin(AWAY)
    const claim = world.claim(prepareJudge, round()!)!
    world.keys.delete(name)
    world.end(judgeOutcome, claim, judged(GOOD))
    t.notOk(world.keys.has(name))
    t.equal(round(), undefined)
  }
})
