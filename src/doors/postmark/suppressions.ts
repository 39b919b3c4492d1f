/**
 * suppressions - the suppression list of a stream: its dump, and adding and removing up to 50 addresses
 */

import type { SuppressionEntry } from '../../../schemas/suppression.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import type { ServerKey } from '../../views/key.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { readFields } from '../common/fields.ts'
import { isAccepted, isReply, type OwnApi, type OwnRefusal, refuseFields } from '../common/own-api.ts'
import { pageFrom, readOwnPages } from '../common/pages.ts'
import { decodeParam } from '../common/path-address.ts'
import { CODES, refuseAs } from './errors.ts'
import { instant, parseSpan, readParameters } from './query.ts'
import { findStream } from './streams.ts'

const PAGE_SIZE = 1_000
/** Maximum entries of a dump; a longer list is read in time ranges. */
const DUMP_MAX = 50_000
/** Pages without an entry count as well. */
const PAGES_MAX = 200
/** Addresses of one request, as Postmark bounds it. */
const ADDRESSES_MAX = 50

type Shown = readonly [reason: string, origin: string]
const SHOWN: Readonly<Record<SuppressionEntry['reason'], Shown>> = {
  hard_bounce: ['HardBounce', 'Recipient'],
  spam_complaint: ['SpamComplaint', 'Recipient'],
  unsubscribe: ['ManualSuppression', 'Recipient'],
  manual: ['ManualSuppression', 'Customer'],
}

/** GET /message-streams/{id}/suppressions/dump */
export const postmarkDumpSuppressions: DoorHandler = async (request, own) => {
  const known = ['suppressionreason', 'origin', 'emailaddress', 'fromdate', 'todate', 'count', 'offset']
  const { parameters, issues } = readParameters(request, known)
  const { fromMs, toMs } = parseSpan(parameters, issues)
  if (issues.length > 0) return refuseFields(issues)
  const stream = await findStream(request, own, decodeParam(request, 'id'))
  if ('answer' in stream) return stream.answer
  const { emailaddress: recipient, suppressionreason: reason, origin } = parameters
  const filter = {
    streamId: stream.streamId,
    ...(recipient !== undefined && { recipient }),
    ...(fromMs !== null && { createdFrom: instant(fromMs) }),
    ...(toMs !== null && { createdTo: instant(toMs) }),
  }
  const entries = await readList(request, own, filter)
  if ('answer' in entries) return entries.answer
  const isSame = (one: string, other: string | undefined) =>
    other === undefined || one.toLowerCase() === other.toLowerCase()
  const Suppressions = entries
    .filter((one) => isSame(SHOWN[one.reason][0], reason) && isSame(SHOWN[one.reason][1], origin))
    .map((one) => {
      const [SuppressionReason, Origin] = SHOWN[one.reason]
      return { EmailAddress: one.recipient, SuppressionReason, Origin, CreatedAt: one.createdAt }
    })
  return { status: 200, json: { Suppressions } }
}

/** Reads a list whole. */
async function readList(
  request: EdgeRequest,
  own: OwnApi,
  filter: object,
): Promise<readonly SuppressionEntry[] | { readonly answer: Answer }> {
  const read = async (after: string | null) => {
    const body = { ...filter, limit: PAGE_SIZE, ...(after !== null && { after }) }
    const asked = { body, rename: () => 'emailaddress' }
    return pageFrom<SuppressionEntry>(await own.call('searchSuppressions', request, asked), 'suppressions')
  }
  const seen = await readOwnPages(read, { pagesMax: PAGES_MAX, enough: DUMP_MAX })
  if ('answer' in seen) return seen
  if (seen.isWhole) return seen.items
  const message = `The list has more than ${DUMP_MAX} entries. Read it in spans with fromdate and todate.`
  return { answer: refuseAs(422, CODES.invalidField, message) }
}

/** POST /message-streams/{id}/suppressions */
export const postmarkAddSuppressions: DoorHandler = async (request, own) => {
  return changeEach(request, own, async (streamId, address) => {
    const body = { streamId, recipients: [address] }
    return {
      answer: await own.call('addSuppressions', request, { body, rename: () => 'EmailAddress' }),
      is: 'Suppressed',
    }
  })
}

/** POST /message-streams/{id}/suppressions/delete */
export const postmarkDeleteSuppressions: DoorHandler = async (request, own) => {
  return changeEach(request, own, async (streamId, address) => {
    return { answer: await liftAddress(request, own, { streamId, address }), is: 'Deleted' }
  })
}

/** Lifts the entry of an address. Without one our route is asked all the same, and answers 404. */
export async function liftAddress(
  request: EdgeRequest,
  own: OwnApi,
  { streamId, address }: { readonly streamId: string; readonly address: unknown },
): Promise<Answer> {
  const body = { streamId, recipient: address, limit: 1 }
  const seen = await own.call('searchSuppressions', request, { body, rename: () => 'EmailAddress' })
  if (!isAccepted(seen)) return seen
  const [entry] = (seen.json as { readonly suppressions: readonly SuppressionEntry[] }).suppressions
  const id = entry?.suppressionId ?? (request.key as ServerKey).serverId
  return own.call('liftSuppression', request, { params: { id } })
}

/** Outcomes of one address that do not end the request. */
const OF_ADDRESS = [400, 409]

async function changeEach(
  request: EdgeRequest,
  own: OwnApi,
  change: (streamId: string, address: unknown) => Promise<{ readonly answer: Answer; readonly is: string }>,
): Promise<Answer> {
  const { fields, issues } = readFields(request.body, new Set(['Suppressions']))
  const { Suppressions: list } = fields
  if (issues.length > 0) return refuseFields(issues)
  if (!Array.isArray(list) || list.length === 0 || list.length > ADDRESSES_MAX)
    return refuseFields([{ path: 'Suppressions', message: `Must be a list of 1 to ${ADDRESSES_MAX} addresses` }])
  const stream = await findStream(request, own, decodeParam(request, 'id'))
  if ('answer' in stream) return stream.answer
  const Suppressions: object[] = []
  for (const one of list) {
    const { EmailAddress } = readFields(one, new Set(['EmailAddress'])).fields
    const { answer, is } = await change(stream.streamId, EmailAddress)
    const status = isReply(answer) ? answer.status : 0
    if (isAccepted(answer) || status === 404) Suppressions.push({ EmailAddress, Status: is, Message: null })
    else if (isReply(answer) && OF_ADDRESS.includes(status))
      Suppressions.push({ EmailAddress, Status: 'Failed', Message: sentenceOf(answer.json as OwnRefusal) })
    else return answer
  }
  return { status: 200, json: { Suppressions } }
}

function sentenceOf({ message, issues }: OwnRefusal): string {
  return issues?.[0]?.message ?? message ?? 'Refused'
}
