/**
 * parsed - the effect of parsing on a received message: its standing, the fields for lists, and the `inbound` event.
 *
 * States of an item: received -> parsed (the event is in the same commit); if the content store did not answer, again
 * after a minute, two, four, up to an hour. One without an outcome after five claims is `parser_error`, with an event.
 * Verdicts that the DNS left open are completed later (`judged.ts`). Guarantees: there is one event; a message that
 * expired in the meantime is not restored, and its result's object is removed.
 *
 * Keys: `received received-state:<server>:<segment>`, `received-head:<server>:<day>:<n>`,
 * `received-by-person:<server>:<segment>:<bucket>`, `person:<account>`
 *
 * Spec inbound.parse, inbound.event
 */

import type { CommandType, Decision, Done, Fact, Op, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { nextRoundAtMs } from '../../mail/authenticate/rounds.ts'
import { HOUR_MS, MINUTE_MS, monthName } from '../../state/calendar.ts'
import { namingFacts, PersonNumbers, unreadPersons } from '../../state/person/person.ts'
import type { ContentHead } from '../../state/received/content-head.ts'
import { parseReceivedEntry, receivedFact } from '../../state/received/entry.ts'
import { type JudgeRound, judgeDue } from '../../state/received/judge-item.ts'
import { accountOfParseLane, type ReceivedPlace, readParseItem } from '../../state/received/parse-item.ts'
import { fromPostingOps } from '../../state/received/posting.ts'
import type { ReceivedStanding } from '../../state/received/standing.ts'
import { serverOwner, serverRef } from '../../state/server.ts'
import { eventLogOwner } from '../../state/webhook/event-log.ts'
import { unlinkReceivedDue } from '../message/unlink.ts'
import { announced, announceMessages } from '../webhook/announce.ts'
import type { CheckResult, ParseJob, ParseOutcome, ParseResult } from './parse-job.ts'
import { rowFacts, rowsIn, rowWrites } from './rows.ts'

/** The result for an unreadable message. */
const UNREADABLE: ParseResult = {
  parsedId: null,
  hasText: false,
  hasHtml: false,
  attachmentCount: 0,
  parseIssue: 'parser_error',
  from: null,
  subject: null,
  dateMs: null,
  named: { hashes: '', isWhole: false },
  check: null,
}

export const prepareParse: CommandType<PrepareBody, ParseJob | null> = {
  name: 'prepare parse',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => rowFacts(shard, readParseItem(item)),
  decide({ lane, item }, _states, facts, { shard }) {
    const place = readParseItem(item)
    const { standing, head } = rowsIn(facts, shard, place)
    if (standing === null || head === null || standing.isParsed) return { kind: 'done', reply: null }
    const { sizeBytes } = standing
    return { kind: 'done', reply: { accountId: accountOfParseLane(lane), ...place, sizeBytes, head } }
  },
}

export const parseOutcome: CommandType<OutcomeBody<ParseOutcome>, null> = {
  name: 'parse outcome',
  frees: true,
  entities: ({ item }) => [serverRef(readParseItem(item).serverId)],
  counters: ({ item }) => {
    const { serverId } = readParseItem(item)
    return [serverOwner(serverId), eventLogOwner(serverId)]
  },
  facts({ lane, item, outcome }, _states, { shard }, known) {
    const place = readParseItem(item)
    const from = outcome?.result === 'parsed' ? outcome.parsed.from : null
    const persons = from === null ? [] : namingFacts({ shard, accountId: accountOfParseLane(lane) }, [from.hmac], known)
    return [receivedFact(shard, place), ...rowFacts(shard, place), ...persons]
  },
  decide({ lane, item, attempt, current, outcome }, states, facts, context): Decision<null> {
    const { shard, nowMs } = context
    const done = [{ lane, item }]
    if (outcome?.result === 'later') {
      const atMs = nowMs + Math.min(HOUR_MS, MINUTE_MS * 2 ** (attempt - 1))
      return { kind: 'done', reply: null, ...(current && { due: [{ lane, item, atMs }] }) }
    }
    const parsed = outcome?.parsed ?? UNREADABLE
    const place = readParseItem(item)
    const { standing, head } = rowsIn(facts, shard, place)
    const entry = facts.range(receivedFact(shard, place))[0]
    const message = entry === undefined ? null : parseReceivedEntry(entry)
    const unwanted = parsed.parsedId === null ? [] : [unlinkReceivedDue(context, place.serverId, parsed.parsedId)]
    if (standing === null || message === null || standing.isParsed)
      return { kind: 'done', reply: null, done, due: unwanted }
    const account = { shard, accountId: accountOfParseLane(lane) }
    const unread: readonly Fact[] = parsed.from === null ? [] : unreadPersons(facts, account, [parsed.from.hmac])
    if (unread.length > 0) return { kind: 'need', facts: unread }
    const persons = new PersonNumbers(facts, account)
    const receivedAtMs = msOf(place.messageId)
    // A person whose mail was erased in the meantime gets no number.
    const isKept = parsed.from !== null && head !== null
    const from = isKept ? persons.numberOfSender(parsed.from.hmac, monthName(receivedAtMs)) : 0
    const news = { kind: 'inbound', event: 'inbound', segment: place.segment, messageId: place.messageId } as const
    const of = { serverId: place.serverId, news: [news], streamIds: [message.streamId] }
    const told = announceMessages(of, { states, facts, context })
    if (told.kind === 'need') return told
    const ops = [
      ...rowOps(shard, place, { standing, head, parsed, from }),
      ...fromPostingOps(context, { shard, ...place }, { messageId: place.messageId, sender: message.sender, from }),
      ...persons.ops(),
    ]
    // The row was removed by an erasure, or by the end of its content, and is not restored.
    const round = head === null || parsed.check === null ? null : nextRound(place, parsed.check)
    const due = [...(head === null ? unwanted : []), ...(round === null ? [] : [judgeDue(account.accountId, round)])]
    const written: Done<null> = { kind: 'done', reply: null, done, ops, due }
    return announced(written, told.staged)
  },
}

/** Writes of the rows. */
function rowOps(
  shard: number,
  place: ReceivedPlace,
  {
    standing,
    head,
    parsed,
    from,
  }: { standing: ReceivedStanding; head: ContentHead | null; parsed: ParseResult; from: number },
): Op[] {
  const { hasText, hasHtml, attachmentCount, parseIssue, check } = parsed
  const told: ReceivedStanding = {
    ...standing,
    isParsed: true,
    hasText,
    hasHtml,
    attachmentCount,
    parseIssue,
    from,
    ...(check !== null && { authentication: check.authentication, checkedAtMs: check.checkedAtMs }),
  }
  const known: ContentHead | null = head && {
    ...head,
    parsedId: parsed.parsedId,
    fromAddress: parsed.from?.address ?? null,
    fromName: parsed.from?.name ?? null,
    subject: parsed.subject,
    dateMs: parsed.dateMs,
    named: parsed.named,
    // The session is only needed for another round.
    session: check !== null && nextRound(place, check) !== null ? head.session : null,
  }
  return rowWrites(shard, place, { standing: told, head: known })
}

/** The next round for open verdicts; null if all are complete. */
function nextRound(place: ReceivedPlace, { authentication, checkedAtMs }: CheckResult): JudgeRound | null {
  const atMs = nextRoundAtMs(authentication, { firstAtMs: checkedAtMs, rounds: 1 })
  return atMs === null ? null : { place, round: 2, firstAtMs: checkedAtMs, atMs }
}
