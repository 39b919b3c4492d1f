/**
 * notice - mail from the service itself: notices about sending domains, dashboard links, and changes of a user's
 * sign-in.
 *
 * A notice is not a message of a server, so it is in no log, counts against no limit and has no events. It waits in a
 * separate lane and is retried like mail. An account without administrators has one notice too, which is only logged
 * for the operator.
 *
 * A link is mailed while it works; its text is made from its row, its token by the sending process.
 *
 * Item: `link.<link>.<ms>`, `me.<what>.<user short>.<ms>`, or
 * `<kind>.<domain short>.<place of the administrator or ->.<ms>`.
 * Key: `administrators:<account>`
 *
 * Spec domain.notice, link.mail, session.notice
 */

import type {
  CommandType,
  Context,
  Decision,
  Due,
  Fact,
  Facts,
  OutcomeBody,
  PrepareBody,
  States,
} from '../../../cluster/behaviour.ts'
import { idOfShort, shardOf, shortId } from '../../../cluster/id.ts'
import { nextAttemptAtMs, parseRetryHintMs } from '../../mail/retry.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { linkFact, type StoredLink } from '../../state/dashboard/link.ts'
import { NOTICE_LANE } from '../../state/dashboard/places.ts'
import { userFact } from '../../state/dashboard/user.ts'
import { type DomainState, domainRef } from '../../state/domain.ts'
import { hashFraction } from '../../state/hash-fraction.ts'
import { administratorsKey } from '../../state/keys.ts'
import { linkIn, linkOfItem } from '../dashboard/link.ts'
import { userIn } from '../dashboard/user.ts'
import { type UserNoticeItem, userNoticeOfItem } from '../dashboard/user-notice.ts'
import type { AttemptOutcome } from '../message/attempt-outcome.ts'

/** `warning` means that a record is missing and mail is still sent. `ended`: mail is refused. */
export type NoticeKind = 'warning' | 'ended'

/** A link to be mailed. */
export interface LinkJob {
  readonly kind: 'link'
  readonly linkId: string
  readonly link: StoredLink
  /** Name of the link's account. */
  readonly accountName: string | null
}

/** A notice for a user. */
export interface UserNoticeJob extends UserNoticeItem {
  readonly kind: 'me'
  readonly address: string
}

export type NoticeJob = DomainNoticeJob | LinkJob | UserNoticeJob

export interface DomainNoticeJob {
  readonly kind: NoticeKind
  readonly domain: DomainState
  /** When it came to this. */
  readonly atMs: number
  /** Null if the account has no administrator. */
  readonly address: string | null
}

/** How an attempt ended. */
export type NoticeOutcome = Pick<AttemptOutcome, 'result' | 'response'>

interface NoticeItem {
  readonly kind: NoticeKind
  readonly domainId: string
  /** Field in the hash of administrators; null if the account has none. */
  readonly place: string | null
  readonly atMs: number
}

/** The notice for a change of a domain's state; null for no notice. */
export function decideNotice(before: DomainState, after: DomainState): NoticeKind | null {
  if (!before.verified) return null
  if (!after.verified) return 'ended'
  return before.failingSinceMs === null && after.failingSinceMs !== null ? 'warning' : null
}

/** The read that a notice needs. */
export function administratorsFact(shard: number, accountId: string): Fact & { read: 'hash' } {
  return { read: 'hash', key: administratorsKey(shard, accountId) }
}

/** One notice for each administrator (`administrators`: place -> address). */
export function noticeDues(
  kind: NoticeKind,
  { domainId }: DomainState,
  of: { readonly administrators: ReadonlyMap<string, string>; readonly nowMs: number },
): Due[] {
  const places = of.administrators.size === 0 ? [null] : [...of.administrators.keys()]
  return places.map((place) => {
    const item = formatItem({ kind, domainId, place, atMs: of.nowMs })
    return { lane: NOTICE_LANE, item, atMs: of.nowMs }
  })
}

export const prepareNotice: CommandType<PrepareBody, NoticeJob | null> = {
  name: 'prepare notice',
  entities: ({ item }) =>
    linkOfItem(item) === null && userNoticeOfItem(item) === null ? [domainRef(parseItem(item).domainId)] : [],
  counters: () => [],
  facts: ({ item }, states, { shard }) => {
    const mailed = linkOfItem(item)
    if (mailed !== null) return [linkFact(shard, mailed.linkId)]
    const told = userNoticeOfItem(item)
    if (told !== null) return [userFact(shard, told.userId)]
    const { domainId, place } = parseItem(item)
    const domain = states.get<DomainState | null>(domainRef(domainId))
    return domain === null || place === null ? [] : [addressFact(domain, place)]
  },
  decide({ item }, states, facts, context) {
    const mailed = linkOfItem(item)
    if (mailed !== null) return prepareLink(mailed.linkId, states, facts, context)
    const told = userNoticeOfItem(item)
    if (told !== null) {
      const user = userIn(facts, context.shard, told.userId)
      return { kind: 'done', reply: user && { kind: 'me', ...told, address: user.address } }
    }
    const { kind, domainId, place, atMs } = parseItem(item)
    const domain = states.get<DomainState | null>(domainRef(domainId))
    if (domain === null) return { kind: 'done', reply: null }
    const address = place === null ? null : facts.field(addressFact(domain, place).key, place)
    // A former administrator gets no notice.
    if (place !== null && address === null) return { kind: 'done', reply: null }
    return { kind: 'done', reply: { kind, domain, atMs, address } }
  },
}

export const noticeOutcome: CommandType<OutcomeBody<NoticeOutcome>, null> = {
  name: 'notice outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ lane, item, attempt, current, outcome }, _states, _facts, { nowMs }) {
    if (outcome === null || outcome.result !== 'deferred' || !current) return { kind: 'done', reply: null }
    const hintMs = outcome.response === null ? null : parseRetryHintMs(outcome.response)
    const { atMs: acceptedAtMs } = linkOfItem(item) ?? userNoticeOfItem(item) ?? parseItem(item)
    const nextAtMs = nextAttemptAtMs({ attempt, acceptedAtMs, nowMs, unit: hashFraction(`${item}#${attempt}`), hintMs })
    return { kind: 'done', reply: null, due: nextAtMs === null ? [] : [{ lane, item, atMs: nextAtMs }] }
  },
}

/** The job that mails a link; none if it no longer works. */
function prepareLink(linkId: string, states: States, facts: Facts, context: Context): Decision<LinkJob | null> {
  const link = linkIn(facts, context.shard, linkId, context.nowMs)
  if (link === null || link.address === null) return { kind: 'done', reply: null }
  const ref = link.purpose === 'invitation' || link.purpose === 'setup' ? accountRef(link.ownerId) : null
  if (ref !== null && !states.has(ref)) return { kind: 'need', entities: [ref] }
  const account = ref === null ? null : states.get<AccountState | null>(ref)
  return { kind: 'done', reply: { kind: 'link', linkId, link, accountName: account?.name ?? null } }
}

function addressFact({ accountId }: DomainState, place: string): Fact & { read: 'fields' } {
  const key = administratorsKey(shardOf(accountId) as number, accountId)
  return { read: 'fields', key, fields: [place] }
}

function formatItem({ kind, domainId, place, atMs }: NoticeItem): string {
  return `${kind}.${shortId(domainId)}.${place ?? '-'}.${atMs}`
}

function parseItem(item: string): NoticeItem {
  const [kind, short = '', place = '-', atMs] = item.split('.')
  return {
    kind: kind === 'ended' ? 'ended' : 'warning',
    domainId: idOfShort(short),
    place: place === '-' ? null : place,
    atMs: Number(atMs),
  }
}
