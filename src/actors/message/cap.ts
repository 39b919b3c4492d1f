/**
 * cap - publishes the events of a monthly cap, at 80 percent and at the first send that it refuses.
 *
 * States, per cap and month: no event, warned, reached. A cap that was raised and is reached again has a new event.
 * The state is stored with the counters of the cap's owner.
 *
 * Guarantees: refused requests do not each cause an event; a clock that goes back causes no second notice.
 *
 * Spec event.cap
 */

import type { Staged } from '../../../cluster/behaviour.ts'
import type { CapEventName } from '../../../schemas/webhook.ts'
import { type AccountCounters, accountOwner } from '../../state/account.ts'
import { type CapTold, type Limit, type LimitScope, periodOf } from '../../state/quota.ts'
import { type ServerCounters, serverOwner } from '../../state/server.ts'
import { type AnnounceTurn, accountTopic, announceCaps, type CapNews, serverTopic } from '../webhook/announce.ts'
import type { SendTurn } from './send-turn.ts'

/** The writes of cap events. */
export interface CapTelling {
  readonly staged: Staged
  readonly account: Pick<AccountCounters, 'monthTold' | 'testMonthTold'>
  readonly server: Pick<ServerCounters, 'monthTold'>
}

type Turn = AnnounceTurn &
  Pick<SendTurn, 'account' | 'server' | 'accountCounters' | 'serverCounters' | 'limits' | 'requested'>

interface CapEvent {
  readonly event: CapEventName
  readonly limit: Limit
}

/** Share of a cap at which it is warned of. */
const WARNING_SHARE = 0.8

/**
 * The cap events that accepting the request brings: warnings and, if a monthly cap refused messages of a partial send,
 * `cap_reached`. Takes the `refused` recipients of the first of these messages; 0 if there is none. Out: null for no
 * event; `need` if something must be read first.
 */
export function warnOfCaps(
  turn: Turn,
  refused = 0,
): CapTelling | Extract<ReturnType<typeof announceCaps>, { kind: 'need' }> | null {
  let news: CapEvent[] | null = null
  for (const limit of turn.limits) {
    if (limit.period !== 'month' || limit.used + turn.requested < limit.limit * WARNING_SHARE) continue
    if (isWarned(toldOf(turn, limit.scope), monthNow(turn))) continue
    news = [...(news ?? []), { event: 'cap_warning', limit }]
  }
  if (refused > 0) news = [...(news ?? []), ...reachedCaps(turn, turn.requested, refused)]
  return news === null || news.length === 0 ? null : tell(turn, news)
}

/** The records of the caps that refuse and have no event yet. */
export function tellReachedCaps(
  turn: Turn,
): Staged | Extract<ReturnType<typeof announceCaps>, { kind: 'need' }> | null {
  const reached = reachedCaps(turn, 0, turn.requested)
  if (reached.length === 0) return null
  const telling = tell(turn, reached)
  if ('kind' in telling) return telling
  const { account, server, accountCounters, serverCounters } = turn
  const counters: { owner: string; value: unknown }[] = [...(telling.staged.counters ?? [])]
  if (hasAny(telling.account))
    counters.push({ owner: accountOwner(account.accountId), value: { ...accountCounters, ...telling.account } })
  if (hasAny(telling.server))
    counters.push({ owner: serverOwner(server.serverId), value: { ...serverCounters, ...telling.server } })
  return { ...telling.staged, counters }
}

/** Monthly caps not reported as reached yet that refuse `refused` more once the request has taken `taken`. */
function reachedCaps(turn: Turn, taken: number, refused: number): CapEvent[] {
  const reached: CapEvent[] = []
  for (const limit of turn.limits) {
    const used = limit.used + taken
    if (limit.period !== 'month' || used + refused <= limit.limit) continue
    if (isToldReached(toldOf(turn, limit.scope), { month: monthNow(turn), cap: limit.limit })) continue
    reached.push({ event: 'cap_reached', limit: { ...limit, used } })
  }
  return reached
}

function tell(turn: Turn, news: readonly CapEvent[]) {
  const announcement = announceCaps(
    news.map(({ event, limit }) => decideNews(turn, event, limit)),
    turn,
  )
  if (announcement.kind === 'need') return announcement
  const month = monthNow(turn)
  let account: CapTelling['account'] = {}
  let server: CapTelling['server'] = {}
  for (const { event, limit } of news) {
    const { scope } = limit
    // If one request causes a warning and `cap_reached` of one cap, the second builds on the first.
    const own = scope === 'server' ? server.monthTold : scope === 'test' ? account.testMonthTold : account.monthTold
    const after = toldAfter(own ?? toldOf(turn, scope), { month, event, cap: limit.limit })
    if (scope === 'server') server = { monthTold: after }
    else account = scope === 'test' ? { ...account, testMonthTold: after } : { ...account, monthTold: after }
  }
  return { staged: announcement.staged, account, server }
}

function decideNews(turn: Turn, event: CapEventName, { scope, limit, used }: Limit): CapNews {
  const { account, server, requested, context } = turn
  const taken = event === 'cap_warning' ? used + requested : used
  const reference = { kind: 'cap', event, scope, cap: limit, used: taken, occurredAtMs: context.nowMs } as const
  const senderId = server.serverId
  if (scope === 'server')
    return { reference, senderId, serverIds: server.hasWebhooks ? [senderId] : [], topic: serverTopic(senderId) }
  const mode = scope === 'test' ? 'test' : 'live'
  const serverIds = (account.webhookServers ?? []).filter((one) => one.mode === mode).map(({ serverId }) => serverId)
  return { reference, senderId, serverIds, topic: accountTopic(account.accountId, mode) }
}

function toldOf({ accountCounters, serverCounters }: Turn, scope: LimitScope): CapTold | undefined {
  if (scope === 'server') return serverCounters?.monthTold
  return scope === 'test' ? accountCounters?.testMonthTold : accountCounters?.monthTold
}

function monthNow({ context }: Turn): number {
  return periodOf('month', context.nowMs)
}

function isWarned(told: CapTold | undefined, month: number): boolean {
  if (told === undefined || month > (told[0] ?? 0)) return false
  return month < (told[0] ?? 0) || told[1] === 1
}

function isToldReached(told: CapTold | undefined, { month, cap }: { month: number; cap: number }): boolean {
  if (told === undefined || month > (told[0] ?? 0)) return false
  return month < (told[0] ?? 0) || cap <= (told[2] ?? 0)
}

function toldAfter(
  told: CapTold | undefined,
  { month, event, cap }: { month: number; event: CapEventName; cap: number },
): CapTold {
  const [warned = 0, reached = 0] = told !== undefined && told[0] === month ? told.slice(1) : []
  if (event === 'cap_reached') return [month, warned, cap]
  return reached === 0 ? [month, 1] : [month, 1, reached]
}

function hasAny(counters: object): boolean {
  return Object.keys(counters).length > 0
}
