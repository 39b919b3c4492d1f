/**
 * suppressions - the suppression lists of a server: search, read, add, lift; the operator's search and lift of any
 * reason
 *
 * Addresses are hashed here, so that the search of an address never names it below.
 *
 * Spec suppression.search, suppression.add, suppression.lift
 */

import { homeShard, shardOf } from '../../cluster/id.ts'
import { SUPPRESSIONS_PAGE_DEFAULT } from '../../schemas/limits.ts'
import type { SuppressionSearch } from '../../schemas/suppression.ts'
import type { AddSuppressionsBody, SuppressionsAdded } from '../actors/suppression/add-suppressions.ts'
import type { LiftBody } from '../actors/suppression/lift-suppression.ts'
import type { HandlerOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import type { Scans } from '../http/scans.ts'
import type { Secrets } from '../process/secrets.ts'
import { type ServerState, serverRef } from '../state/server.ts'
import { placeFact } from '../state/suppression.ts'
import { entityFact, parseState } from '../views/entity.ts'
import { readShardServers, type ShardServer } from '../views/shard-servers.ts'
import { type ListOwner, readSuppression, type SuppressionFilter, searchSuppressions } from '../views/suppression.ts'
import { giveOrder } from './answer.ts'
import { asOperator, type OperatorDeps } from './as-operator.ts'

/** Dependencies of the routes of suppressions. */
export interface SuppressionDeps extends OperatorDeps {
  readonly secrets: Secrets
}

function naming({ secrets }: SuppressionDeps) {
  return { pseudonymOf: (hmac: string) => secrets.pseudonymOf(hmac) }
}

/** The handlers of a server's lists. */
export function suppressionHandlers(deps: SuppressionDeps & { readonly scans: Scans }) {
  return {
    searchSuppressions: deps.scans.limit(makeSearchSuppressions, deps),
    addSuppressions: makeAddSuppressions(deps),
    readSuppression: makeReadSuppression(deps),
    liftSuppression: makeLiftSuppression(deps),
  }
}

/** POST /v1/suppressions/search. Spec suppression.search */
function makeSearchSuppressions(deps: SuppressionDeps): HandlerOf<'searchSuppressions'> {
  return async ({ key, body }) => {
    const filter = suppressionFilterOf(deps.secrets, key, body)
    const seen = await searchSuppressions(deps.read, key, { keyHash: key.hash, filter, ...naming(deps) })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/suppressions/{id}. Spec suppression.entry */
function makeReadSuppression(deps: SuppressionDeps): HandlerOf<'readSuppression'> {
  return async ({ key, params }) => {
    const seen = await readSuppression(deps.read, key, { suppressionId: params.id ?? '', ...naming(deps) })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** POST /v1/suppressions. Spec suppression.add */
function makeAddSuppressions(deps: SuppressionDeps): HandlerOf<'addSuppressions'> {
  return async ({ key, body }) => {
    const { accountId, serverId } = key
    const { streamId, recipients, reason } = body
    const shard = homeShard(accountId)
    // A stream of another shard belongs to another account, and its key name would not be valid on this shard.
    const isHere = shardOf(streamId.toLowerCase()) === shard
    const order: AddSuppressionsBody = {
      accountId,
      serverId,
      orderedBy: 'server',
      keyHash: key.hash,
      streamId: isHere ? streamId.toLowerCase() : serverId,
      recipients: findPersons(deps, accountId, recipients),
      ...(reason !== undefined && { reason }),
    }
    const { reply, answer } = await giveOrder<SuppressionsAdded>(deps, shard, { name: 'add-suppressions', body: order })
    return answer ?? { status: 200, json: { added: reply.added, existing: reply.existing } }
  }
}

/** DELETE /v1/suppressions/{id}. Spec suppression.lift */
function makeLiftSuppression(deps: SuppressionDeps): HandlerOf<'liftSuppression'> {
  return async ({ key, params }) => {
    const { accountId, serverId } = key
    const id = (params.id ?? '').toLowerCase()
    // An id of another shard belongs to another account; an unused id keeps the order of refusals.
    const suppressionId = shardOf(id) === shardOf(accountId) ? id : serverId
    return lift(deps, { accountId, serverId, orderedBy: 'server', keyHash: key.hash, suppressionId })
  }
}

/** POST /v1/operator/suppressions/search. Spec suppression.search */
export function makeOperatorSearchSuppressions(deps: SuppressionDeps): HandlerOf<'operatorSearchSuppressions'> {
  return asOperator(deps.read, async ({ body }) => {
    const { serverId, ...search } = body
    const id = serverId.toLowerCase()
    const shard = shardOf(id)
    const seen = shard === null ? [] : await deps.read(shard, [entityFact(shard, serverRef(id))])
    if (seen === null) return refusalReply('unavailable')
    const server = parseState<ServerState>(seen[0])
    if (server === null) return refusalReply('not_found')
    const filter = suppressionFilterOf(deps.secrets, server, search)
    const page = await searchSuppressions(deps.read, server, { keyHash: null, filter, ...naming(deps) })
    return typeof page === 'string' ? refusalReply(page) : { status: 200, json: page }
  })
}

/** DELETE /v1/operator/suppressions/{suppressionId}. Spec suppression.lift, operator.note */
export function makeOperatorLiftSuppression(deps: SuppressionDeps): HandlerOf<'operatorLiftSuppression'> {
  return asOperator(deps.read, async ({ params }, by) => {
    const suppressionId = (params.suppressionId ?? '').toLowerCase()
    const found = await findServer(deps, suppressionId)
    if (typeof found === 'string') return refusalReply(found)
    const { accountId, serverId } = found
    return lift(deps, { accountId, serverId, orderedBy: 'operator', keyHash: '', suppressionId, by })
  })
}

async function lift(deps: SuppressionDeps, body: LiftBody): Promise<Answer> {
  const { answer } = await giveOrder(deps, homeShard(body.accountId), { name: 'lift-suppression', body })
  return answer ?? { status: 204 }
}

/** The server whose list holds a suppression; an operator names none. */
async function findServer(
  { read }: SuppressionDeps,
  suppressionId: string,
): Promise<ShardServer | 'not_found' | 'unavailable'> {
  const shard = shardOf(suppressionId)
  if (shard === null) return 'not_found'
  const servers = await readShardServers(read, shard)
  const seen = await read(
    shard,
    (servers ?? []).map(({ serverId }) => placeFact(shard, { serverId, suppressionId })),
  )
  if (servers === null || seen === null) return 'unavailable'
  return servers.find((_, index) => (seen[index]?.length ?? 0) > 0) ?? 'not_found'
}

/** The filter of a search. In: the owner of the lists, and the body. */
export function suppressionFilterOf(
  secrets: Pick<Secrets, 'addressHmac'>,
  { accountId }: ListOwner,
  search: SuppressionSearch,
): SuppressionFilter {
  const { streamId, recipient, reason, createdFrom, createdTo, limit, after } = search
  return {
    streamId: streamId?.toLowerCase() ?? null,
    hmac: recipient === undefined ? null : secrets.addressHmac(accountId, recipient),
    reason: reason ?? null,
    fromMs: createdFrom === undefined ? null : Date.parse(createdFrom),
    toMs: createdTo === undefined ? null : Date.parse(createdTo),
    limit: limit ?? SUPPRESSIONS_PAGE_DEFAULT,
    after: after?.toLowerCase() ?? null,
  }
}

/** Each address once, in its normal form. Spec address.grammar */
function findPersons({ secrets }: SuppressionDeps, accountId: string, addresses: readonly string[]) {
  const persons = new Map<string, string>()
  for (const text of addresses) {
    const at = text.lastIndexOf('@')
    const address = text.slice(0, at) + text.slice(at).toLowerCase()
    const hmac = secrets.addressHmac(accountId, address)
    if (!persons.has(hmac)) persons.set(hmac, address)
  }
  return Array.from(persons, ([hmac, address]) => ({ hmac, address }))
}
