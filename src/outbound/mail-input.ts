/**
 * mail-input - a message with its content, as it is composed: from the commit that accepted it, or read from the store
 *
 * The same message, recipient and content give the same input, so that it can be composed again.
 */

import { shardOf } from '../../cluster/id.ts'
import type { AttemptJob, JobMessage } from '../actors/message/prepare-attempt.ts'
import type { ComposeInput } from '../mail/compose/compose.ts'
import { formatFeedbackId, hasFeedbackId } from '../mail/compose/feedback-id.ts'
import { formatListFields, withoutListFields } from '../mail/compose/list-fields.ts'
import { fillHeaders, fillListed } from '../mail/compose/listed.ts'
import type { MailInput, RawInput } from '../mail/compose/raw.ts'
import { formatUnsubscribeToken, formatUnsubscribeUrl } from '../mail/unsubscribe-token.ts'
import { readListed } from '../state/broadcast/content.ts'
import { BODY_PART, RAW_PART } from '../state/message/content-part.ts'
import { spelledAddress } from '../state/message/head.ts'
import { type Body, readPlainBody, readPlainPart, unpackPart } from '../store/content.ts'
import { type OutgoingStore, readAttachments, readBody, readOwn, readRaw } from '../store/outgoing.ts'

/** Values that the service writes into a message. */
export interface NameDeps {
  /** Signs the tokens in links. */
  readonly tokenKey: Buffer
  /** Public address of the service, which unsubscribe links begin with. */
  readonly baseUrl: string
  /** HMAC of an address within its account. */
  readonly addressHmac: (accountId: string, address: string) => string
  /** Names the installation in Feedback-IDs. */
  readonly senderId: string
  /** The host that accepted a message received whole, for its Received field. */
  readonly smtpHostname: string
}

export interface MailInputDeps extends NameDeps {
  readonly outgoing: OutgoingStore
}

/** Reads from a store that may not answer (undefined). Rejects if it stays unreachable. */
export type Insist = <Value>(read: () => Promise<Value | undefined>) => Promise<Value>

/** The message if its content came with the job and needs no unpacking; null if it must be read. */
export function messageAtHand(deps: NameDeps, job: AttemptJob): MailInput | null {
  const { message } = job
  if (message.raw !== null) {
    const whole = message.content?.find(({ part }) => part === RAW_PART)
    const bytes = whole === undefined ? null : readPlainPart(whole.chunks)
    return bytes === null ? null : makeRawInput(deps, job, bytes)
  }
  const [body] = message.content ?? []
  if (body?.part !== BODY_PART || message.attachments.length > 0 || message.broadcast !== null) return null
  const plain = readPlainBody(body.chunks)
  return plain === null ? null : makeInput(deps, job, { body: plain, attachments: [] })
}

/** The message with its content; null when that is gone. Rejects as `insist` does. */
export async function readMailInput(deps: MailInputDeps, job: AttemptJob, insist: Insist): Promise<MailInput | null> {
  const { outgoing } = deps
  const { message } = job
  if (message.broadcast !== null) return readListedMessage(deps, job, insist)
  const place = { ...message, shard: shardOf(message.accountId) as number }
  if (message.raw !== null) {
    const bytes = await insist(() => readRaw(outgoing, place))
    return bytes === null ? null : makeRawInput(deps, job, bytes)
  }
  const body = (await bodyAtHand(message)) ?? (await insist(() => readBody(outgoing, place)))
  const contents = body === null ? null : await readFiles(message, () => readAttachments(outgoing, place), insist)
  if (body === null || contents === null) return null
  const attachments = message.attachments.map(({ name, contentType, contentId }, index) => {
    return { name, contentType, contentId, content: contents[index] as Buffer }
  })
  return makeInput(deps, job, { body, attachments })
}

/** A broadcast's message, with its individual values filled into the shared content. */
async function readListedMessage(deps: MailInputDeps, job: AttemptJob, insist: Insist): Promise<MailInput | null> {
  const { outgoing } = deps
  const { message } = job
  const shard = shardOf(message.accountId) as number
  const { contentId } = message.broadcast as NonNullable<JobMessage['broadcast']>
  const own = readListed(message.content?.[0]?.chunks ?? [])
  const listed = own ?? (await insist(() => readOwn(outgoing, { ...message, shard })))
  const shared = listed === null ? null : await insist(() => outgoing.listed.read(shard, contentId))
  if (listed === null || shared === null) return null
  const { head, texts } = shared
  const contents = await insist(() => shared.files())
  if (contents === null) return null
  const attachments = head.attachments.map(({ name, contentType, contentId: id }, index) => {
    return { name, contentType, contentId: id, content: contents[index] as Buffer }
  })
  const from = { address: spelledAddress(head, 0, message.from.address), name: head.senderName }
  const subject = message.subject === '' ? (head.subject ?? '') : message.subject
  const { substitutions } = listed
  const headers = head.ownsList ? fillHeaders(head.headers, substitutions) : head.headers
  const whole = { ...job, message: { ...message, from, subject, headers } }
  const body = fillListed(texts, substitutions, makeLink(deps, job))
  return makeInput(deps, whole, { body, attachments, ...(head.ownsList && { ownsList: true }) })
}

/** The body if it came with the message. */
async function bodyAtHand({ content }: JobMessage): Promise<Body | null> {
  const body = content?.find(({ part }) => part === BODY_PART)
  return body === undefined ? null : (JSON.parse((await unpackPart(body.chunks)).toString()) as Body)
}

/** The attachments' bytes, from the job if they came with it, otherwise from the store. */
async function readFiles(
  { attachments, content }: JobMessage,
  read: () => ReturnType<typeof readAttachments>,
  insist: Insist,
): Promise<readonly Buffer[] | null> {
  const files = content?.filter(({ part }) => part !== BODY_PART) ?? []
  if (files.length < attachments.length) return insist(read)
  return Promise.all(files.map(({ chunks }) => unpackPart(chunks)))
}

function makeRawInput(deps: NameDeps, job: AttemptJob, raw: Buffer): RawInput {
  const { messageId, acceptedAtMs, from } = job.message
  const feedbackId = formatFeedbackId({ ...job.message, senderId: deps.senderId })
  return { messageId, acceptedAtMs, from, feedbackId, ...makeList(deps, job), receivedBy: deps.smtpHostname, raw }
}

function makeInput(
  deps: NameDeps,
  job: AttemptJob,
  {
    body,
    attachments,
    ownsList = false,
  }: { readonly body: Body; readonly attachments: ComposeInput['attachments']; readonly ownsList?: boolean },
): ComposeInput {
  const { messageId, acceptedAtMs, from, to, cc, subject, contentId, listName } = job.message
  const headers = listName === null ? job.message.headers : withoutListFields(job.message.headers, ownsList)
  const { text, html } = body
  // Boundaries are derived from the content's id, which did not exist when the content was written.
  return {
    messageId,
    acceptedAtMs,
    from,
    to,
    cc,
    subject,
    headers,
    ...(!hasFeedbackId(headers) && { feedbackId: formatFeedbackId({ ...job.message, senderId: deps.senderId }) }),
    ...makeList(deps, job, ownsList),
    text,
    html,
    attachments,
    boundarySeed: contentId,
  }
}

/**
 * The header fields that the service adds on a broadcast stream, with a separate link for each recipient. Spec
 * unsubscribe.fields
 */
function makeList(deps: NameDeps, job: AttemptJob, ownsList = false): Pick<ComposeInput, 'list'> {
  const { streamId, listName, from } = job.message
  if (listName === null) return {}
  const unsubscribeUrl = ownsList ? null : makeLink(deps, job)
  return { list: formatListFields({ unsubscribeUrl, streamName: listName, streamId, fromDomain: domainOf(from) }) }
}

/** The unsubscribe link of a recipient. */
function makeLink(
  { baseUrl, tokenKey, addressHmac }: NameDeps,
  { message: { messageId, accountId, serverId, streamId }, recipient: { address, index } }: AttemptJob,
): string {
  const hmac = addressHmac(accountId, address)
  const target = { messageId, recipient: index, serverId, streamId, hmac }
  return formatUnsubscribeUrl(baseUrl, formatUnsubscribeToken(tokenKey, target))
}

/** The domain of an address, in lower case. */
export function domainOf({ address }: JobMessage['from']): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase()
}
