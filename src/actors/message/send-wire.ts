/**
 * send-wire - a send and its answer as they travel between processes: values in a fixed order, without their names.
 *
 * The names would be more than half of a small send, and each process would serialize and parse them for every
 * message.
 */

import type { Wire } from '../../../cluster/behaviour.ts'
import { Fault } from '../../../cluster/fault.ts'
import type { RawContent, StoredContent } from '../../state/message/head.ts'
import type {
  Accepted,
  AcceptedMessage,
  RateLeft,
  RefusedMessage,
  SendBody,
  SendItem,
  SendRecipient,
  SendReply,
} from './send.ts'

type PackedPerson = readonly [address: string, domain: string, name: string | null, hmac: string]
type PackedRecipient = readonly [...PackedPerson, kind: SendRecipient['kind']]

type Part = SendItem['content']['parts'][number]

type PackedShort = readonly [
  SendItem['streamId'],
  PackedPerson,
  readonly PackedRecipient[],
  SendItem['subject'],
  SendItem['tag'],
  SendItem['tagHash'],
  SendItem['metadata'],
  SendItem['headers'],
  SendItem['attachments'],
  readonly (readonly [Part['part'], Part['chunks'], Part['blob']])[],
  SendItem['builtBytes'],
  SendItem['lane'],
]
/** The last values are optional: content in the content store, a message received whole, and a scheduled time. */
type PackedItem =
  | PackedShort
  | readonly [...PackedShort, StoredContent]
  | readonly [...PackedShort, StoredContent | null, RawContent]
  | readonly [...PackedShort, StoredContent | null, RawContent | null, sendAtMs: number]

type PackedBody = readonly [
  SendBody['accountId'],
  SendBody['serverId'],
  SendBody['test'],
  SendBody['keyHash'],
  SendBody['billing'],
  SendBody['defaultStreamId'],
  SendBody['source'],
  SendBody['idempotency'],
  SendBody['batch'],
  readonly PackedItem[],
  partial?: true,
]

type PackedAccepted = readonly [
  readonly (readonly [
    AcceptedMessage['messageId'],
    AcceptedMessage['submittedAtMs'],
    suppressed?: NonNullable<AcceptedMessage['suppressed']>,
  ])[],
  Accepted['test'],
  Accepted['replayed'],
  readonly (readonly [RateLeft['scope'], RateLeft['limit'], RateLeft['left'], RateLeft['resetsAtMs']])[],
  refused?: readonly (readonly [RefusedMessage['place'], RefusedMessage['code'], RefusedMessage['extra']])[],
]

const BODY_VALUES = 10
const PARTIAL_BODY_VALUES = 11

export const sendWire = {
  pack: packBody,
  unpack(packed: unknown): SendBody {
    if (!Array.isArray(packed) || packed.length < BODY_VALUES || packed.length > PARTIAL_BODY_VALUES)
      throw new Fault('The body of a send is malformed')
    return unpackBody(packed as unknown as PackedBody)
  },
  packReply: (reply: SendReply) => (reply.kind === 'accepted' ? packAccepted(reply) : reply),
  unpackReply: (packed: unknown) =>
    (Array.isArray(packed) ? unpackAccepted(packed as unknown as PackedAccepted) : packed) as SendReply,
} satisfies Wire<SendBody, SendReply>

function packBody(body: SendBody): PackedBody {
  const { accountId, serverId, test, keyHash, billing, defaultStreamId, source, idempotency, messages, batch } = body
  const items = messages.map(packItem)
  const whole = [
    accountId,
    serverId,
    test,
    keyHash,
    billing,
    defaultStreamId,
    source,
    idempotency,
    batch,
    items,
  ] as const
  return body.partial ? [...whole, true] : whole
}

function unpackBody(packed: PackedBody): SendBody {
  const [accountId, serverId, test, keyHash, billing, defaultStreamId, source, idempotency, batch, items, partial] =
    packed
  const messages = items.map(unpackItem)
  const body = { accountId, serverId, test, keyHash, billing, defaultStreamId, source, idempotency, messages, batch }
  return partial ? { ...body, partial } : body
}

function packItem(item: SendItem): PackedItem {
  const { from, tag, tagHash, metadata, headers, attachments, builtBytes, lane } = item
  const packed: PackedShort = [
    item.streamId,
    [from.address, from.domain, from.name, from.hmac],
    item.recipients.map(({ address, domain, name, hmac, kind }) => [address, domain, name, hmac, kind] as const),
    item.subject,
    tag,
    tagHash,
    metadata,
    headers,
    attachments,
    item.content.parts.map(({ part, chunks, blob }) => [part, chunks, blob] as const),
    builtBytes,
    lane,
  ]
  const { stored } = item.content
  if (item.sendAtMs !== null) return [...packed, stored, item.raw, item.sendAtMs]
  if (item.raw !== null) return [...packed, stored, item.raw]
  return stored === null ? packed : [...packed, stored]
}

function unpackItem(packed: PackedItem): SendItem {
  const [streamId, sender, recipients, subject, tag, tagHash, metadata, headers, attachments, parts, ...last] = packed
  const [builtBytes, lane, stored = null, raw = null, sendAtMs = null] = last
  const [address, domain, name, hmac] = sender
  return {
    streamId,
    from: { address, domain, name, hmac },
    recipients: recipients.map(unpackRecipient),
    subject,
    tag,
    tagHash,
    metadata,
    headers,
    attachments,
    content: { parts: parts.map(([part, chunks, blob]) => ({ part, chunks, blob })), stored },
    raw,
    builtBytes,
    sendAtMs,
    lane,
  }
}

function unpackRecipient([address, domain, name, hmac, kind]: PackedRecipient): SendRecipient {
  return { address, name, kind, hmac, domain }
}

function packAccepted({ messages, refused, test, replayed, rate }: Accepted): PackedAccepted {
  const whole = [
    messages.map(({ messageId, submittedAtMs, suppressed }) =>
      suppressed === undefined
        ? ([messageId, submittedAtMs] as const)
        : ([messageId, submittedAtMs, suppressed] as const),
    ),
    test,
    replayed,
    rate.map(({ scope, limit, left, resetsAtMs }) => [scope, limit, left, resetsAtMs] as const),
  ] as const
  if (refused === undefined) return whole
  return [...whole, refused.map(({ place, code, extra }) => [place, code, extra] as const)]
}

function unpackAccepted([messages, test, replayed, rate, refused]: PackedAccepted): Accepted {
  return {
    kind: 'accepted',
    messages: messages.map(([messageId, submittedAtMs, suppressed]) => {
      return { messageId, submittedAtMs, ...(suppressed && { suppressed }) }
    }),
    test,
    replayed,
    rate: rate.map(([scope, limit, left, resetsAtMs]) => ({ scope, limit, left, resetsAtMs })),
    ...(refused && { refused: refused.map(([place, code, extra]) => ({ place, code, extra })) }),
  }
}
