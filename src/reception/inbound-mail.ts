/**
 * inbound-mail - mail to inbound streams: checks recipients, and writes a mail to disk before its 250
 *
 * States of a mail: coming, into the content store, under a name for each recipient -> durable -> named by the commit
 * of `receive` -> 250. The content of a mail that was certainly not committed is removed at once; if the outcome is
 * unknown, the sweep removes it. A mail with an unknown outcome is answered with 451, so its sender tries again and it
 * may exist twice.
 *
 * Spec inbound.recipient, inbound.receive, inbound.limit
 */

import type { Ask } from '../../cluster/work.ts'
import { MAIL_BYTES_MAX } from '../../schemas/limits.ts'
import type { ReceiveBody, ReceivedRecipient, ReceiveReply } from '../actors/inbound/receive.ts'
import type { Contents } from '../content/contents.ts'
import { newMailKey } from '../content/mail-key.ts'
import type { Secrets } from '../process/secrets.ts'
import { newObjectId } from '../state/received/content-head.ts'
import { type InboundLocalPart, parseInboundLocalPart } from '../state/received/local-part.ts'
import { receivedObjectName } from '../state/received/object.ts'
import { wrapMailKey } from '../state/ring/sealing.ts'
import type { AddresseeFinder } from '../views/inbound/address.ts'
import { type FreshMails, FreshPieces } from './fresh-mails.ts'
import type { IncomingMail, RcptAddress } from './mx-listener.ts'
import {
  type JoinedTransaction,
  judgeInboundRecipient,
  NO_ROOM,
  NO_SUCH_RECIPIENT,
  TEMPORARY_FAILURE,
  TOO_MANY_A_MINUTE,
} from './recipient-rules.ts'
import type { SmtpAnswer } from './smtp-answer.ts'

/** A recipient that was taken. */
export interface InboundTarget extends InboundLocalPart {
  readonly kind: 'inbound'
  readonly shard: number
  readonly accountId: string
  readonly serverId: string
}

/** Results of mail to inbound addresses, for the operator's metrics. */
export type InboundResult = 'inbound' | 'inbound_put_off' | 'inbound_cut'

export interface InboundMailDeps {
  readonly ask: Ask
  readonly findAddressee: AddresseeFinder
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly random: () => number
  readonly secrets: Pick<Secrets, 'addressHmac' | 'tagHash' | 'ring'>
  readonly contents: Contents
  /** Where a mail waits that this process may parse itself; null in a process without actors. */
  readonly freshMails: FreshMails | null
  /** Whether store and disk have room for new mail. */
  readonly hasRoom: () => boolean
  readonly received: (result: InboundResult) => void
}

/** Checks whether mail to an address under INBOUND_DOMAIN is accepted. Returns its target or the refusal. */
export async function judgeInbound(
  deps: Pick<InboundMailDeps, 'findAddressee' | 'hasRoom' | 'nowMs'>,
  { localPart }: RcptAddress,
  joined: JoinedTransaction,
): Promise<{ readonly target: InboundTarget } | SmtpAnswer> {
  const named = parseInboundLocalPart(localPart)
  if (named === null) return NO_SUCH_RECIPIENT
  const addressee = await deps.findAddressee(named.streamId)
  const refusal = judgeInboundRecipient({ addressee, joined, hasRoom: deps.hasRoom(), nowMs: deps.nowMs() })
  if (refusal !== null || addressee === null || addressee === 'unavailable') return refusal ?? NO_SUCH_RECIPIENT
  const { shard, server, account } = addressee
  const { accountId } = account
  return { target: { kind: 'inbound', ...named, shard, accountId, serverId: server.serverId } }
}

/** Takes a mail; 250 once its messages are committed. */
export async function takeInbound(
  deps: InboundMailDeps,
  mail: IncomingMail<unknown>,
  targets: readonly InboundTarget[],
): Promise<SmtpAnswer> {
  const [{ shard, accountId }] = targets as [InboundTarget, ...InboundTarget[]]
  const recipients = once(targets).map((target): ReceivedRecipient => {
    const { serverId, streamId, spelledId, mailboxHash } = target
    const plusHash = mailboxHash === null ? null : deps.secrets.tagHash(serverId, mailboxHash)
    const objectId = newObjectId(deps.nowMs(), deps.random)
    return { serverId, streamId, spelledId, mailboxHash, plusHash, objectId }
  })
  const names = recipients.map(({ serverId, objectId }) => receivedObjectName(shard, serverId, objectId))
  const mailKey = newMailKey()
  const { sender, peer } = mail
  const fresh = deps.freshMails === null ? null : new FreshPieces()
  const counted = new CountedPieces(mail.pieces, fresh)
  const bytesMax = Math.min(mail.declaredBytes ?? MAIL_BYTES_MAX, MAIL_BYTES_MAX)
  const kept = await deps.contents.put({ names, mailKey, kind: 'mail', source: counted, bytesMax })
  if (!kept.ok) {
    deps.received(kept.kind === 'cut' ? 'inbound_cut' : 'inbound_put_off')
    return kept.kind === 'full' ? NO_ROOM : TEMPORARY_FAILURE
  }
  const body: ReceiveBody = {
    accountId,
    sizeBytes: counted.bytes,
    sender: sender === null ? null : { hmac: deps.secrets.addressHmac(accountId, sender), address: sender },
    session: { ip: peer.ip, helo: peer.helo },
    // Sealed now, because the mail has come for as long as its sender liked.
    key: wrapMailKey(deps.secrets.ring, mailKey),
    recipients,
  }
  // Before the commit, because the mail may be parsed before this function continues.
  const raw = fresh?.whole() ?? null
  if (raw !== null) for (const { objectId } of recipients) deps.freshMails?.keep(objectId, raw)
  const asked = await deps.ask(shard, { name: 'receive', cmdId: deps.newCmdId(), body })
  const reply = asked.kind === 'answer' ? (asked.reply as ReceiveReply) : null
  if (reply?.kind === 'received') {
    for (const _ of reply.messageIds) deps.received('inbound')
    return accepted(reply.messageIds)
  }
  for (const { objectId } of recipients) deps.freshMails?.take(objectId)
  deps.received('inbound_put_off')
  // If the outcome of the command is unknown, the sweep decides about the content.
  if (asked.kind === 'answer' || asked.kind === 'unavailable') await deps.contents.remove(names)
  return reply?.why === 'rate_limited' ? TOO_MANY_A_MINUTE : TEMPORARY_FAILURE
}

/** The reply to the sender: RFC 5321 4.5.3.1.5 leaves room for one id in a line. */
function accepted([first = '', ...others]: readonly string[]): SmtpAnswer {
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  return { code: 250, text: `2.0.0 accepted ${first}${more}` }
}

/** An address that is spelled in two ways is one recipient. */
function once(targets: readonly InboundTarget[]): InboundTarget[] {
  const byAddress = new Map(targets.map((target) => [`${target.streamId}+${target.mailboxHash ?? ''}`, target]))
  return [...byAddress.values()]
}

/** Pieces in transit, with their total size and a copy for the parser. */
class CountedPieces implements AsyncIterable<Buffer> {
  bytes = 0
  readonly #pieces: AsyncIterable<Buffer>
  readonly #fresh: FreshPieces | null

  constructor(pieces: AsyncIterable<Buffer>, fresh: FreshPieces | null) {
    this.#pieces = pieces
    this.#fresh = fresh
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for await (const piece of this.#pieces) {
      this.bytes += piece.length
      this.#fresh?.add(piece)
      yield piece
    }
  }
}
