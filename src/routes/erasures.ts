/**
 * erasures - POST /v1/erasures, GET /v1/erasures/{id}
 *
 * The address goes no further than this file: the command has its HMAC, the pseudonym derived from that, and its
 * domain. For the address of one of the account's inbound streams, it also names the stream.
 *
 * Spec erasure.create, erasure.read
 */

import { homeShard, shardOf } from '../../cluster/id.ts'
import type { EraseBody, ErasureOrdered } from '../actors/erasure/erase.ts'
import type { HandlerOf } from '../http/request.ts'
import { refusalReply } from '../http/respond.ts'
import type { Secrets } from '../process/secrets.ts'
import type { ErasedMailbox } from '../state/erasure.ts'
import { parseInboundLocalPart } from '../state/received/local-part.ts'
import { type StreamState, streamRef } from '../state/stream.ts'
import { entityFact, parseState } from '../views/entity.ts'
import { formatErasure, readErasure } from '../views/erasure.ts'
import type { Reader } from '../views/key.ts'
import { giveOrder, type OrderDeps } from './answer.ts'

/** Dependencies of the routes of erasures. */
export interface ErasureDeps extends OrderDeps {
  readonly read: Reader
  readonly secrets: Pick<Secrets, 'addressHmac' | 'pseudonymOf' | 'tagHash'>
  readonly inboundDomain: string
}

/** POST /v1/erasures. Spec erasure.create */
export function makeCreateErasure(deps: ErasureDeps): HandlerOf<'createErasure'> {
  return async ({ key, body }) => {
    const { accountId, hash } = key
    const { address } = body
    const { secrets } = deps
    const shard = homeShard(accountId)
    const mailbox = await findMailbox(deps, { shard, address })
    if (mailbox === 'unavailable') return refusalReply('unavailable')
    const hmac = secrets.addressHmac(accountId, address)
    const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
    const order: EraseBody = { accountId, keyHash: hash, hmac, pseudonym: secrets.pseudonymOf(hmac), domain, mailbox }
    const replied = await giveOrder<ErasureOrdered>(deps, shard, { name: 'erase', body: order })
    if (replied.answer !== undefined) return replied.answer
    return { status: 202, json: formatErasure(replied.reply.erasure) }
  }
}

/** GET /v1/erasures/{id}. Spec erasure.read */
export function makeReadErasure({ read, nowMs }: ErasureDeps): HandlerOf<'readErasure'> {
  return async ({ key, params }) => {
    const seen = await readErasure(read, key, { erasureId: params.id ?? '', nowMs: nowMs() })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: formatErasure(seen) }
  }
}

/** The stream that an inbound address names; the walk checks its owner. Null if it is not such an address. */
async function findMailbox(
  { read, secrets, inboundDomain }: ErasureDeps,
  { shard, address }: { readonly shard: number; readonly address: string },
): Promise<ErasedMailbox | null | 'unavailable'> {
  const at = address.lastIndexOf('@')
  if (address.slice(at + 1).toLowerCase() !== inboundDomain) return null
  const local = parseInboundLocalPart(address.slice(0, at))
  if (local === null || shardOf(local.streamId) !== shard) return null
  const seen = await read(shard, [entityFact(shard, streamRef(local.streamId))])
  if (seen === null) return 'unavailable'
  const stream = parseState<StreamState>(seen[0])
  if (stream === null) return null
  const { streamId, mailboxHash } = local
  return { streamId, plusHash: mailboxHash === null ? null : secrets.tagHash(stream.serverId, mailboxHash) }
}
