/**
 * suppressions - /suppressions and below, on the default stream of the key's server
 *
 * An address in the path is looked up through our search; it goes into no log.
 */

import type { SuppressionEntry } from '../../../schemas/suppression.ts'
import type { EdgeRequest } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import type { ServerKey } from '../../views/key.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { readFields } from '../common/fields.ts'
import { isAccepted, type OwnApi, refuseFields } from '../common/own-api.ts'
import { pageFrom, readClientPage } from '../common/pages.ts'
import { decodeParam } from '../common/path-address.ts'
import { parsePageAsked } from './lists.ts'

/** Entries of one batch. */
const BATCH_MAX = 100
const ORIGINS: Readonly<Record<SuppressionEntry['reason'], string>> = {
  hard_bounce: 'bounce',
  spam_complaint: 'complaint',
  manual: 'manual',
  // Resend has no separate origin for it.
  unsubscribe: 'manual',
}
const REASONS: Readonly<Record<string, SuppressionEntry['reason']>> = {
  bounce: 'hard_bounce',
  complaint: 'spam_complaint',
}

type Found = SuppressionEntry | { readonly answer: Answer }

/** POST /suppressions */
export const resendAddSuppression: DoorHandler = async (request, own) => {
  const { fields, issues } = readFields(request.body, new Set(['email']))
  if (issues.length > 0) return refuseFields(issues)
  const { email } = fields
  if (email === undefined) return refuseFields([{ path: 'email', message: 'Required' }])
  const added = await add(request, own, { recipients: [email], rename: () => 'email' })
  if (!isAccepted(added)) return added
  const found = await findByAddress(request, own, email as string)
  return 'answer' in found ? found.answer : { status: 201, json: nameOf(found) }
}

/** POST /suppressions/batch/add */
export const resendAddSuppressions: DoorHandler = async (request, own) => {
  const { fields, issues } = readFields(request.body, new Set(['emails']))
  if (issues.length > 0) return refuseFields(issues)
  const { emails } = fields
  if (!isBatch(emails)) return refuseFields([{ path: 'emails', message: `Must be a list of 1 to ${BATCH_MAX}` }])
  const added = await add(request, own, { recipients: emails, rename: (path) => path.replace('recipients', 'emails') })
  if (!isAccepted(added)) return added
  const data: object[] = []
  for (const email of emails) {
    const found = await findByAddress(request, own, email as string)
    if ('answer' in found) return found.answer
    data.push(nameOf(found))
  }
  return { status: 200, json: { data } }
}

/** POST /suppressions/batch/remove */
export const resendRemoveSuppressions: DoorHandler = async (request, own) => {
  const { fields, issues } = readFields(request.body, new Set(['emails', 'ids']))
  if (issues.length > 0) return refuseFields(issues)
  const { emails, ids } = fields
  const names = emails ?? ids
  if (!isBatch(names) || (emails !== undefined && ids !== undefined) || !names.every((one) => typeof one === 'string'))
    return refuseFields([{ path: '', message: `Must be emails or ids, a list of 1 to ${BATCH_MAX}` }])
  const data: object[] = []
  for (const name of names) {
    const { answer, id } = await lift(request, own, name)
    const isGone = isAccepted(answer)
    const isLeft = 'status' in answer && (answer.status === 404 || answer.status === 409)
    if (!isGone && !isLeft) return answer
    data.push({ object: 'suppression', id, deleted: isGone })
  }
  return { status: 200, json: { data } }
}

/** GET /suppressions */
export const resendListSuppressions: DoorHandler = async (request, own) => {
  const { origin } = request.query
  const reason = REASONS[origin ?? '']
  const page = await readClientPage<SuppressionEntry>(
    async (after, limit) => {
      const body = { streamId: streamOf(request), limit, ...(after !== null && { after }), ...(reason && { reason }) }
      return pageFrom(await own.call('searchSuppressions', request, { body }), 'suppressions')
    },
    parsePageAsked(request),
    {
      idOf: ({ suppressionId }) => suppressionId,
      ...(origin === 'manual' && { keep: (one: SuppressionEntry) => ORIGINS[one.reason] === origin }),
    },
  )
  if ('answer' in page) return page.answer
  return { status: 200, json: { object: 'list', has_more: page.hasMore, data: page.items.map(shown) } }
}

/** GET /suppressions/{id} */
export const resendReadSuppression: DoorHandler = async (request, own) => {
  const found = await find(request, own, decodeParam(request, 'id'))
  if ('answer' in found) return found.answer
  return { status: 200, json: { object: 'suppression', ...shown(found) } }
}

/** DELETE /suppressions/{id} */
export const resendRemoveSuppression: DoorHandler = async (request, own) => {
  const { answer, id } = await lift(request, own, decodeParam(request, 'id'))
  return isAccepted(answer) ? { status: 200, json: { object: 'suppression', id, deleted: true } } : answer
}

function add(
  request: EdgeRequest,
  own: OwnApi,
  { recipients, rename }: { recipients: readonly unknown[]; rename: (path: string) => string },
): Promise<Answer> {
  return own.call('addSuppressions', request, { body: { streamId: streamOf(request), recipients }, rename })
}

/** Lifts one. Without such an entry our route is still called, because the account's state is refused first. */
async function lift(request: EdgeRequest, own: OwnApi, name: string): Promise<{ answer: Answer; id: string }> {
  const found = await find(request, own, name)
  if ('answer' in found && !isMissing(found.answer)) return { answer: found.answer, id: name }
  const id = 'answer' in found ? name : found.suppressionId
  const params = { id: 'answer' in found ? (request.key as ServerKey).serverId : found.suppressionId }
  return { answer: await own.call('liftSuppression', request, { params }), id }
}

async function find(request: EdgeRequest, own: OwnApi, name: string): Promise<Found> {
  if (name.includes('@')) return findByAddress(request, own, name)
  const answer = await own.call('readSuppression', request, { params: { id: name } })
  if (!isAccepted(answer)) return { answer }
  const entry = answer.json as SuppressionEntry
  return entry.streamId === streamOf(request) ? entry : { answer: refusalReply('not_found') }
}

async function findByAddress(request: EdgeRequest, own: OwnApi, address: string): Promise<Found> {
  const body = { streamId: streamOf(request), recipient: address, limit: 1 }
  const answer = await own.call('searchSuppressions', request, { body, rename: () => 'id' })
  if (!isAccepted(answer)) return { answer }
  const [entry] = (answer.json as { suppressions: readonly SuppressionEntry[] }).suppressions
  return entry ?? { answer: refusalReply('not_found') }
}

function isMissing(answer: Answer): boolean {
  return 'status' in answer && answer.status === 404
}

function isBatch(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0 && value.length <= BATCH_MAX
}

function streamOf({ key }: EdgeRequest): string {
  return (key as ServerKey).defaultStreamId
}

function nameOf({ suppressionId }: SuppressionEntry): object {
  return { object: 'suppression', id: suppressionId }
}

function shown({ suppressionId, recipient, reason, messageId, createdAt }: SuppressionEntry): object {
  return { id: suppressionId, email: recipient, origin: ORIGINS[reason], source_id: messageId, created_at: createdAt }
}
