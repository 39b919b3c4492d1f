/**
 * messages - POST /v1/messages/search, POST /v1/messages/outcomes and GET /v1/messages/{id}
 *
 * Addresses and tags are searched by their keyed hashes, which are made here.
 *
 * Spec message.search, message.outcomes, message.read
 */

import type { OutcomesBody } from '../../schemas/counts/outcomes.ts'
import type { MessageExport } from '../../schemas/export/export.ts'
import { acceptedTopic } from '../actors/webhook/announce.ts'
import type { HandlerOf } from '../http/request.ts'
import { refusalReply } from '../http/respond.ts'
import type { Scans } from '../http/scans.ts'
import type { Secrets } from '../process/secrets.ts'
import type { SourceLetter } from '../state/message/log-entry.ts'
import type { ServerKey } from '../views/key.ts'
import { listMessageDeliveries } from '../views/message/deliveries.ts'
import type { MessageFilter } from '../views/message/filter.ts'
import { type MessageDeps, readMessage } from '../views/message/message.ts'
import { type SearchDeps, searchMessages } from '../views/message/search.ts'
import { tallyMessages } from '../views/message/tally.ts'
import { parsePage } from './answer.ts'
import { makeWaiting, type WaitDeps } from './wait/waits.ts'

/** Dependencies of the search. */
export interface SearchMessagesDeps extends SearchDeps {
  readonly secrets: Pick<Secrets, 'addressHmac' | 'tagHash'>
}

const LETTERS = { api: 'a', smtp: 's', broadcast: 'b' } as const satisfies Record<string, SourceLetter>

/** The handlers of messages that were sent. */
export function messageHandlers(deps: SearchMessagesDeps & MessageDeps & WaitDeps & { readonly scans: Scans }) {
  const search = deps.scans.limit(makeSearchMessages, deps)
  const topics = (serverId: string) => [acceptedTopic(serverId)]
  return {
    searchMessages: makeWaiting(deps, { search, list: 'messages', topics }),
    searchOutcomes: deps.scans.limit(makeSearchOutcomes, deps),
    readMessage: makeReadMessage(deps),
    listMessageDeliveries: makeListMessageDeliveries(deps),
  }
}

/** POST /v1/messages/search */
function makeSearchMessages(deps: SearchMessagesDeps): HandlerOf<'searchMessages'> {
  return async ({ key, body }) => {
    const search = body
    const page = { limit: search.limit, after: search.after?.toLowerCase() ?? null }
    const seen = await searchMessages(deps, key, { filter: messageFilterOf(deps.secrets, key, search), page })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** POST /v1/messages/outcomes */
function makeSearchOutcomes(deps: SearchMessagesDeps): HandlerOf<'searchOutcomes'> {
  return async ({ key, body }) => {
    const asked = { filter: messageFilterOf(deps.secrets, key, body), after: body.after?.toLowerCase() ?? null }
    const seen = await tallyMessages(deps, key, asked)
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/messages/{id} */
function makeReadMessage(deps: MessageDeps): HandlerOf<'readMessage'> {
  return async ({ key, params }) => {
    const seen = await readMessage(deps, key, params.id ?? '')
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/messages/{id}/deliveries. Spec webhook.of-message */
function makeListMessageDeliveries(deps: MessageDeps): HandlerOf<'listMessageDeliveries'> {
  return async ({ key, params, query }) => {
    const asked = { messageId: params.id ?? '', page: parsePage(query) }
    const seen = await listMessageDeliveries(deps, key, asked)
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** The filter of a search. In: the keyed hashes of its owner, and the body. */
export function messageFilterOf(
  secrets: SearchMessagesDeps['secrets'],
  owner: ServerKey,
  search: MessageExport | OutcomesBody,
): MessageFilter {
  const { streamId, broadcastId, recipient, from, tag, metadata, status, source } = search
  const hmacOf = (address: string) => secrets.addressHmac(owner.accountId, address)
  const [entry] = Object.entries(metadata ?? {})
  return {
    streamId: streamId?.toLowerCase() ?? null,
    broadcastId: broadcastId?.toLowerCase() ?? null,
    recipient: recipient === undefined ? null : hmacOf(recipient),
    from: from === undefined ? null : hmacOf(from),
    recipientContains: search.recipientContains?.toLowerCase() ?? null,
    tag: tag === undefined ? null : { text: tag, hash: secrets.tagHash(owner.serverId, tag) },
    metadata: entry === undefined ? null : { name: entry[0], value: entry[1] },
    subject: search.subject === undefined ? null : search.subject.toLowerCase().split(/\s+/).filter(Boolean),
    status: status ?? null,
    event: search.event ?? null,
    site: search.site?.toLowerCase() ?? null,
    classification: search.classification ?? null,
    source: source === undefined ? null : LETTERS[source],
    fromMs: search.submittedFrom === undefined ? null : Date.parse(search.submittedFrom),
    toMs: search.submittedTo === undefined ? null : Date.parse(search.submittedTo),
  }
}
