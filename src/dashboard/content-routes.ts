/**
 * content-routes - the content of mail on separate routes: as JSON, in a frame, sent again, and test messages
 *
 * Reading is checked and recorded (`redact.ts`); the content itself comes from the API handlers.
 *
 * Spec member.content, member.frame, member.test-message, member.send-again
 */

import type { FromSchema } from 'json-schema-to-ts'
import { homeShard } from '../../cluster/id.ts'
import type { DashboardRouteName } from '../../schemas/dashboard/routes.ts'
import type { EmailBody } from '../../schemas/email.ts'
import type { RECEIVED_MESSAGE } from '../../schemas/inbound.ts'
import type { Message } from '../../schemas/message.ts'
import type { Level } from '../../schemas/route.ts'
import { type PublicRouteName, ROUTES } from '../../schemas/routes.ts'
import type { EdgeRequest, Handler, Handlers } from '../http/request.ts'
import { type Answer, type Download, refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import type { Head } from '../state/message/head.ts'
import type { ServerState } from '../state/server.ts'
import { readUser } from '../views/dashboard/user.ts'
import type { ServerKey } from '../views/key.ts'
import { type MessageDeps, readStoredMessage } from '../views/message/message.ts'
import { type ApiProxyDeps, findServer } from './api-proxy.ts'
import { type DashboardHandler, type DashboardRequest, sessionOf } from './deps.ts'
import { findHrefs, mailPreview, referencedIds } from './mail-preview.ts'
import { refuseContent } from './redact.ts'

type Received = FromSchema<typeof RECEIVED_MESSAGE>

const NO_HEADERS_OF_OURS = /^(?:from|to|cc|bcc|subject|date|message-id)$/i

/** The resource of the path, with handlers that read it. */
interface Place {
  readonly server: ServerState
  readonly key: ServerKey
  readonly handlers: Handlers<PublicRouteName>
}

/** GET /dashboard/api/servers/{serverId}/messages/{id}/content */
export function makeReadContent(deps: ApiProxyDeps): DashboardHandler<'readContent'> {
  return (request) =>
    withContent(deps, request, async (place) => {
      const answer = await askPlace<Message>(place, request, 'readMessage')
      if (!('found' in answer)) return answer
      const { text, html, contentAvailable } = answer.found
      if (!contentAvailable) return refusalReply('content_expired')
      return { status: 200, json: { text, html, links: findHrefs(html) } }
    })
}

/** GET /dashboard/api/servers/{serverId}/inbound/{id}/content */
export function makeReadReceivedContent(deps: ApiProxyDeps): DashboardHandler<'readReceivedContent'> {
  return (request) =>
    withContent(deps, request, async (place) => {
      const answer = await askPlace<Received>(place, request, 'readReceived')
      return 'found' in answer ? { status: 200, json: answer.found } : answer
    })
}

/** GET /dashboard/mail/{serverId}/{id}: only as the content of a frame. */
export function makeShowMail(deps: ApiProxyDeps & InlineDeps): DashboardHandler<'showMail'> {
  return (request) => {
    if (request.fetchDest !== '' && request.fetchDest !== 'iframe') return refusalReply('cross_origin')
    return withContent(deps, request, async (place) => {
      const images = request.query.images === 'remote'
      const { mode } = place.server
      const sent = await askPlace<Message>(place, request, 'readMessage')
      if ('found' in sent) {
        const { text, html, contentAvailable } = sent.found
        if (!contentAvailable) return refusalReply('content_expired')
        return mailPreview({ text, html, images, mode, files: await sentImages(deps, place.key, sent.found) })
      }
      const received = await askPlace<Received>(place, request, 'readReceived')
      if (!('found' in received)) return received
      const { text, html, contentAvailable } = received.found
      if (!contentAvailable) return refusalReply('content_expired')
      return mailPreview({ text, html, images, mode, files: await receivedImages(place, request, received.found) })
    })
  }
}

/** POST /dashboard/api/servers/{serverId}/test-message: on a live server to oneself alone. */
export function makeSendTestMessage(deps: ApiProxyDeps): DashboardHandler<'sendTestMessage'> {
  return async (request) => {
    const place = await findPlace(deps, request, 'w')
    if ('answer' in place) return place.answer
    const { from, to, subject, text, html } = request.body
    if (place.server.mode === 'live') {
      const user = await readUser(deps.read, sessionOf(request).row.userId)
      if (user === null || user === 'unavailable') return refusalReply('unavailable')
      const issue = { path: 'to', message: 'Must be your own address on a live server' }
      if (user.address.toLowerCase() !== to.toLowerCase()) return refusalReply('invalid_request', { issues: [issue] })
    }
    const content = { ...(text !== undefined && { text }), ...(html !== undefined && { html }) }
    return send(deps, request, place, { ...NO_EXTRAS, from, to: [to], subject, ...content } as unknown as EmailBody)
  }
}

/** POST /dashboard/api/servers/{serverId}/messages/{id}/send-again: to the recipients that the body names. */
export function makeSendAgain(deps: ApiProxyDeps): DashboardHandler<'sendAgain'> {
  return (request) =>
    withContent(deps, request, async (place) => {
      const answer = await askPlace<Message>(place, request, 'readMessage')
      if (!('found' in answer)) return answer
      const { found } = answer
      if (!found.contentAvailable || found.attachments.length > 0 || (found.text === null && found.html === null))
        return refusalReply(
          'content_expired',
          {},
          'Only messages with stored content and without attachments can be sent again',
        )
      const { recipients: chosen } = request.body
      const known = new Set(found.recipients.map(({ recipient }) => recipient))
      const issues = chosen.flatMap((one, at) =>
        known.has(one) ? [] : [{ path: `recipients.${at}`, message: 'Must be a recipient of the message' }],
      )
      if (issues.length > 0) return refusalReply('invalid_request', { issues })
      const recipients = found.recipients.filter(({ recipient }) => chosen.includes(recipient))
      // Bcc recipients must not see each other, so without To and Cc only one of them can be addressed.
      if (recipients.length > 1 && recipients.every(({ kind }) => kind === 'bcc')) {
        const message = 'Select one Bcc recipient only, or a To or Cc recipient as well'
        return refusalReply('invalid_request', { issues: [{ path: 'recipients', message }] })
      }
      return send(deps, request, place, makeEmailBody({ ...found, recipients }))
    })
}

const NO_EXTRAS = { headers: {}, attachments: [], tag: null, metadata: {} }

function makeEmailBody(message: Message): EmailBody {
  const { from, subject, text, html, tag, metadata, streamId, recipients, headers } = message
  const people = (kind: string) =>
    recipients.filter((one) => one.kind === kind).map(({ recipient, name }) => withName(recipient, name))
  const all = { to: people('to'), cc: people('cc'), bcc: people('bcc') }
  return {
    ...NO_EXTRAS,
    from: withName(from.email, from.name),
    ...addressed(all),
    subject: subject ?? '',
    ...(text !== null && { text }),
    ...(html !== null && { html }),
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !NO_HEADERS_OF_OURS.test(name))),
    tag,
    metadata,
    streamId,
  } as unknown as EmailBody
}

type Person = ReturnType<typeof withName>
type People = Readonly<Partial<Record<'to' | 'cc' | 'bcc', readonly Person[]>>>

/**
 * A message needs a To. Without one its Cc recipients move there, who are visible to all recipients anyway, otherwise
 * the single Bcc recipient.
 */
function addressed({ to = [], cc = [], bcc = [] }: People): People {
  if (to.length > 0) return { to, ...(cc.length > 0 && { cc }), ...(bcc.length > 0 && { bcc }) }
  return cc.length > 0 ? addressed({ to: cc, bcc }) : { to: bcc }
}

function withName(email: string, name: string | null): string | { readonly email: string; readonly name: string } {
  return name === null ? email : { email, name }
}

/** Sends by the ordinary path, with its limits; the author is recorded. */
async function send(deps: ApiProxyDeps, request: DashboardRequest, place: Place, body: EmailBody): Promise<Answer> {
  const { row, accountId } = sessionOf(request)
  const act = { accountId, userId: row.userId, act: request.route.name, targets: { ...request.params } }
  const noted = await giveOrder(deps, homeShard(accountId), { name: 'note-act', body: act })
  if (noted.answer !== undefined) return noted.answer
  const asked = Object.assign(Object.create(request), { key: place.key, route: ROUTES.sendEmail, body })
  return (place.handlers.sendEmail as Handler)(asked as EdgeRequest)
}

/** The server of the path, if the user may read content there; the read is recorded. */
async function withContent(
  deps: ApiProxyDeps,
  request: DashboardRequest,
  act: (place: Place) => Promise<Answer>,
): Promise<Answer> {
  const place = await findPlace(deps, request, request.route.session?.level ?? 'a')
  if ('answer' in place) return place.answer
  const { name } = request.route
  const of = { server: place.server, act: name as DashboardRouteName, targets: request.params }
  return (await refuseContent(deps, sessionOf(request), of)) ?? act(place)
}

async function findPlace(
  deps: ApiProxyDeps,
  request: DashboardRequest,
  level: Level,
): Promise<Place | { readonly answer: Answer }> {
  const found = await findServer(deps, sessionOf(request), { serverId: request.params.serverId ?? '', level })
  return 'answer' in found ? found : { ...found, handlers: deps.handlersWith(deps.ask) }
}

/** The answer of an API handler about the path's message. */
async function askPlace<Found>(
  { key, handlers }: Place,
  request: DashboardRequest,
  name: 'readMessage' | 'readReceived',
): Promise<{ readonly found: Found } | Answer> {
  const asked = Object.assign(Object.create(request), { key, route: ROUTES[name] })
  const answer = await (handlers[name] as Handler)(asked as EdgeRequest)
  return 'json' in answer && answer.status === 200 ? { found: answer.json as Found } : answer
}

export interface InlineDeps extends Pick<MessageDeps, 'read' | 'nowMs'> {
  /** The attachments of a sent message, in order: null once they are gone; undefined if the store did not answer. */
  readonly readFiles: (place: {
    readonly shard: number
    readonly contentId: string
    readonly test: boolean
    readonly head: Head
  }) => Promise<readonly Uint8Array[] | null | undefined>
}

/** Bytes of inline images that a frame brings along. */
const INLINE_BYTES_MAX = 4 * 1024 * 1024

/**
 * The images of a sent message that its HTML refers to. Its attachments are stored until its last recipient reaches a
 * final state (retention.attachments); afterwards a picture with an explanation replaces each image. Returns data URLs
 * by Content-ID.
 */
async function sentImages(
  deps: InlineDeps,
  key: ServerKey,
  { messageId, html, attachments }: Message,
): Promise<Map<string, string>> {
  const wanted = referencedIds(html)
  const isWanted = ({ contentId, contentType }: Message['attachments'][number]) =>
    contentId !== null && wanted.has(contentId) && contentType.startsWith('image/')
  if (!attachments.some(isWanted)) return new Map()
  const stored = await readStoredMessage(deps, key, messageId)
  if (typeof stored === 'string') return new Map()
  const { head, entry } = stored
  const place = { shard: homeShard(key.accountId), contentId: entry.contentId, test: stored.test, head }
  // A message that came whole over SMTP has no separate parts to read.
  const read = head.raw === null ? await deps.readFiles(place) : undefined
  const images = new Map<string, string>()
  let left = INLINE_BYTES_MAX
  for (const [at, attachment] of attachments.entries()) {
    const { contentId, contentType } = attachment
    if (contentId === null || !isWanted(attachment)) continue
    const bytes = read?.[at]
    if (bytes !== undefined && bytes.byteLength <= left) {
      left -= bytes.byteLength
      images.set(contentId, dataUrl(contentType, bytes))
    } else images.set(contentId, read === null ? NO_LONGER_STORED : NOT_SHOWN)
  }
  return images
}

/** The images of a received mail, as data URLs by Content-ID. Takes the handlers that read its files. */
async function receivedImages(
  { key, handlers }: { readonly key: ServerKey; readonly handlers: Handlers<PublicRouteName> },
  request: Pick<EdgeRequest, 'params'>,
  { html, attachments }: Received,
): Promise<Map<string, string>> {
  const wanted = referencedIds(html)
  const images = new Map<string, string>()
  let left = INLINE_BYTES_MAX
  for (const { position, contentId, size, contentType } of attachments) {
    if (contentId === null || !wanted.has(contentId) || size > left || !contentType.startsWith('image/')) continue
    left -= size
    const params = { ...request.params, position: String(position) }
    const asked = Object.assign(Object.create(request), { key, params, route: ROUTES.readReceivedFile })
    const answer = await (handlers.readReceivedFile as Handler)(asked as EdgeRequest)
    if ('read' in answer) images.set(contentId, dataUrl(answer.contentType, await readBytes(answer)))
  }
  return images
}

async function readBytes({ read, size }: Download): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of read(0, size)) pieces.push(piece)
  return Buffer.concat(pieces)
}

function dataUrl(contentType: string, bytes: Uint8Array): string {
  return `data:${contentType};base64,${Buffer.from(bytes).toString('base64')}`
}

/** A picture of a sentence. */
function drawPicture(sentence: string): string {
  const frame = '<rect x=".5" y=".5" width="199" height="59" rx="6" fill="#f4f5f7" stroke="#8a919e"/>'
  const text = `<text x="100" y="35" text-anchor="middle" font-family="sans-serif" font-size="13" fill="#4a505c">${sentence}</text>`
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60" role="img" aria-label="${sentence}">${frame}${text}</svg>`
  return dataUrl('image/svg+xml', Buffer.from(svg))
}

const NO_LONGER_STORED = drawPicture('Image no longer stored')
const NOT_SHOWN = drawPicture('Image not shown here')
