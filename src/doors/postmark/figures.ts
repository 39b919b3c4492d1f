/**
 * figures - GET /server and GET /stats/outbound and below
 */

import type { Server } from '../../../schemas/server.ts'
import type { Stats, StatsEntry } from '../../../schemas/stats.ts'
import type { Stream } from '../../../schemas/stream.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { answerWith, isAccepted, type OwnApi, refuseFields } from '../common/own-api.ts'
import { instant, parseSpan, readParameters } from './query.ts'
import { findStream, listAll, serverNumber } from './streams.ts'

/** GET /server. Keys are shown nowhere. */
export const postmarkReadServer: DoorHandler = async (request, own) => {
  const streams = await listAll(request, own)
  if ('answer' in streams) return streams.answer
  const inbound = streams.find((one: Stream) => one.inboundAddress !== null && one.archivedAt === null)
  return answerWith<Server>(await own.call('readServer', request), ({ name, mode }) => ({
    json: {
      ID: serverNumber(request),
      Name: name,
      ApiTokens: [],
      ServerLink: `${own.baseUrl}/dashboard`,
      Color: 'Blue',
      SmtpApiActivated: true,
      RawEmailEnabled: false,
      DeliveryType: mode === 'live' ? 'Live' : 'Sandbox',
      InboundAddress: inbound?.inboundAddress ?? '',
      InboundHookUrl: '',
      BounceHookUrl: '',
      OpenHookUrl: '',
      DeliveryHookUrl: '',
      ClickHookUrl: '',
      PostFirstOpenOnly: false,
      InboundDomain: '',
      InboundHash: inbound?.inboundAddress?.split('@')[0] ?? '',
      InboundSpamThreshold: 0,
      TrackOpens: false,
      TrackLinks: 'None',
      IncludeBounceContentInHook: false,
      EnableSmtpApiErrorHooks: false,
    },
  }))
}

/** GET /stats/outbound */
export const postmarkOverview: DoorHandler = async (request, own) => {
  const seen = await readDays(request, own)
  if ('answer' in seen) return seen.answer
  const [Sent, Bounced, SpamComplaints] = [sum(seen, sent), sum(seen, bounced), sum(seen, complained)]
  const rateOf = (count: number) => (Sent === 0 ? 0 : Math.round((count / Sent) * 1e5) / 1e3)
  return {
    status: 200,
    json: {
      Sent,
      Bounced,
      SMTPApiErrors: 0,
      BounceRate: rateOf(Bounced),
      SpamComplaints,
      SpamComplaintsRate: rateOf(SpamComplaints),
      // Opens and clicks are not tracked.
      Opens: 0,
      UniqueOpens: 0,
      Tracked: 0,
      WithLinkTracking: 0,
      WithOpenTracking: 0,
      TotalTrackedLinksSent: 0,
      UniqueLinksClicked: 0,
      TotalClicks: 0,
      WithClientRecorded: 0,
      WithPlatformRecorded: 0,
      WithReadTimeRecorded: 0,
    },
  }
}

/** GET /stats/outbound/sends */
export const postmarkSends = daily({ Sent: sent })

/** GET /stats/outbound/bounces */
export const postmarkBounces = daily({
  HardBounce: ({ hardBounced }) => hardBounced,
  SoftBounce: ({ softBounced }) => softBounced,
})

/** GET /stats/outbound/spam */
export const postmarkSpam = daily({ SpamComplaint: complained })

type Figure = (entry: StatsEntry) => number

function sent({ accepted, suppressed }: StatsEntry): number {
  return accepted - suppressed
}

function bounced({ hardBounced, softBounced }: StatsEntry): number {
  return hardBounced + softBounced
}

function complained(entry: StatsEntry): number {
  return entry.complained
}

function sum(entries: readonly StatsEntry[], figure: Figure): number {
  return entries.reduce((total, entry) => total + figure(entry), 0)
}

/** Figures of each day and their sums. */
function daily(figures: Readonly<Record<string, Figure>>): DoorHandler {
  return async (request, own) => {
    const entries = await readDays(request, own)
    if ('answer' in entries) return entries.answer
    const rowOf = (of: readonly StatsEntry[]) =>
      Object.fromEntries(Object.entries(figures).map(([name, figure]) => [name, sum(of, figure)]))
    const days = [...new Set(entries.map(({ at }) => at))]
    const Days = days.map((at) => ({ Date: at.slice(0, 10), ...rowOf(entries.filter((entry) => entry.at === at)) }))
    return { status: 200, json: { Days, ...rowOf(entries) } }
  }
}

async function readDays(
  request: EdgeRequest,
  own: OwnApi,
): Promise<readonly StatsEntry[] | { readonly answer: Answer }> {
  const { parameters, issues } = readParameters(request, ['fromdate', 'todate', 'messagestream', 'tag'])
  const { fromMs, toMs } = parseSpan(parameters, issues)
  const { messagestream, tag } = parameters
  if (tag !== undefined) issues.push({ path: 'tag', message: 'Statistics are kept for streams, not for tags' })
  if (issues.length > 0) return { answer: refuseFields(issues) }
  const stream = messagestream === undefined ? null : await findStream(request, own, messagestream)
  if (stream !== null && 'answer' in stream) return stream
  const query = {
    by: 'day',
    ...(fromMs !== null && { from: instant(fromMs) }),
    ...(toMs !== null && { to: instant(toMs) }),
    ...(stream !== null && { streamId: stream.streamId }),
  }
  const rename = (path: string) => ({ from: 'fromdate', to: 'todate' })[path] ?? path
  const answer = await own.call('readStats', request, { query, rename })
  return isAccepted(answer) ? (answer.json as Stats).stats : { answer }
}
