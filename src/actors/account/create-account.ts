/**
 * create-account - makes an account with its first servers, their default streams and their first keys.
 *
 * Keys come as hash and prefix; the author of the order made the values and shows them.
 *
 * `placeAccount` chooses its shard. Concurrent messages of one shard share a commit, and most of its cost; messages of
 * different shards never do. So accounts are not spread evenly: within the shards of one process and one Redis, two
 * are filled first, then the next two. While one waits for its commit, the other decides. If several processes run
 * shards, or several Redis hold them, each gets an even share; with several Redis one shard of each is enough, because
 * a process decides for one while its others wait.
 *
 * Spec account.create
 */

import type { CommandType, Context, Due, Op } from '../../../cluster/behaviour.ts'
import { assert } from '../../../cluster/fault.ts'
import { msOf } from '../../../cluster/id.ts'
import { ACCOUNT_DEFAULTS, type AccountState, type AccountStatus, accountRef } from '../../state/account.ts'
import { FIRST_KEY_NAME, type NewKey, newKeyOps } from '../../state/api-key.ts'
import { type ActSubject, auditOps, type OperatorAct } from '../../state/audit.ts'
import { linkEndMs, linkOps } from '../../state/dashboard/link.ts'
import { packInvitation } from '../../state/dashboard/member.ts'
import { invitationsKey } from '../../state/dashboard/places.ts'
import { accountsKey, administratorsKey } from '../../state/keys.ts'
import { linkDue } from '../dashboard/link.ts'
import { invitationLinkOps } from '../dashboard/member.ts'
import { type CreatedServer, makeServer, type NewServer } from '../server/create-server.ts'
import { firstPeopleDue } from './people.ts'

export interface CreateAccountBody {
  readonly name: string
  readonly status: AccountStatus
  readonly accountKey: NewKey | null
  /** Only on shard 0, which holds the operator's keys. */
  readonly operatorKey: NewKey | null
  readonly servers: readonly NewServer[]
  /** Addresses to mail about the account; they stay out of every state and stream. */
  readonly administrators?: readonly string[]
  /** Link ids of the invitations of administrators, in order; absent if there are none. */
  readonly invitationLinkIds?: readonly string[]
  /** The link by which the first person comes into the dashboard; absent: none. */
  readonly setupLinkId?: string
  /** The operator who orders it; absent at the first start. */
  readonly by?: OperatorAct
}

export interface CreateAccountReply {
  readonly kind: 'created'
  readonly accountId: string
  readonly account: AccountState
  /** Ids of the account's and the operator's key; null if not requested. */
  readonly accountTokenId: string | null
  readonly operatorTokenId: string | null
  /** In the order of the command. */
  readonly servers: readonly CreatedServer[]
}

export const createAccount: CommandType<CreateAccountBody, CreateAccountReply> = {
  name: 'create-account',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide(body, _states, _facts, context) {
    assert(body.operatorKey === null || context.shard === 0, 'Operator keys live on shard 0', { shard: context.shard })
    const { shard, nowMs } = context
    const accountId = context.newId()
    const accountTokenId = body.accountKey === null ? null : context.newId()
    const operatorTokenId = body.operatorKey === null ? null : context.newId()
    const made = body.servers.map((server) => makeServer(server, accountId, context))
    const account = makeAccount(body, { accountId, accountTokenId, createdAtMs: nowMs })
    const ops: Op[] = [{ key: accountsKey(shard), write: 'ZADD', args: [String(msOf(accountId)), accountId] }]
    ops.push(...administratorOps(shard, accountId, body.administrators ?? []))
    const invited = inviteAll(body, accountId, context)
    ops.push(...invited.ops)
    if (body.setupLinkId !== undefined) ops.push(...setupOps(context, accountId, body.setupLinkId))
    if (body.by !== undefined) ops.push(...auditOps(context, body.by, subjectOf(body, account)))
    const owner = { name: FIRST_KEY_NAME, createdAtMs: nowMs, serverId: null, mode: null, streamId: null }
    if (body.accountKey !== null && accountTokenId !== null)
      ops.push(...newKeyOps(shard, body.accountKey, { ...owner, kind: 'account', accountId, tokenId: accountTokenId }))
    if (body.operatorKey !== null && operatorTokenId !== null) {
      const operator = { ...owner, kind: 'operator' as const, accountId: null, tokenId: operatorTokenId }
      ops.push(...newKeyOps(shard, body.operatorKey, operator))
    }
    return {
      kind: 'done',
      reply: {
        kind: 'created',
        accountId,
        account,
        accountTokenId,
        operatorTokenId,
        servers: made.map(({ ids }) => ids),
      },
      events: [
        { ref: accountRef(accountId), event: { type: 'created', account } },
        ...made.flatMap(({ staged }) => staged.events ?? []),
      ],
      ops: [...ops, ...made.flatMap(({ staged }) => staged.ops ?? [])],
      due: [firstPeopleDue(accountId, nowMs), ...made.map(({ due }) => due), ...invited.due],
    }
  },
}

/** Number of shards filled together, among those of one process. */
export const SHARDS_TOGETHER = 2
/** Accounts of a shard before the next shards are begun. */
export const ACCOUNTS_EACH = 512

function makeAccount(
  { name, status, accountKey, servers }: CreateAccountBody,
  ids: { accountId: string; accountTokenId: string | null; createdAtMs: number },
): AccountState {
  const { accountId, accountTokenId, createdAtMs } = ids
  const keys =
    accountKey === null || accountTokenId === null ? [] : [{ tokenId: accountTokenId, hash: accountKey.hash }]
  return { ...ACCOUNT_DEFAULTS, accountId, name, status, createdAtMs, keys, servers: servers.length, held: false }
}

function administratorOps(shard: number, accountId: string, addresses: readonly string[]): Op[] {
  if (addresses.length === 0) return []
  const args = addresses.flatMap((address, place) => [String(place), address])
  return [{ key: administratorsKey(shard, accountId), write: 'HSET', args }]
}

/** Invites the administrators, each by a mailed link. */
function inviteAll(
  { administrators = [], invitationLinkIds = [] }: CreateAccountBody,
  accountId: string,
  context: Context,
): { readonly ops: readonly Op[]; readonly due: readonly Due[] } {
  const { shard, nowMs } = context
  const ops: Op[] = []
  const due: Due[] = []
  for (const [place, linkId] of invitationLinkIds.entries()) {
    const address = administrators[place]
    assert(address !== undefined, 'Each link of an invitation has its address', { place })
    const invitationId = context.newId()
    const invitation = { address, level: 'a', createdAtMs: nowMs, sentAtMs: nowMs } as const
    const args = [invitationId, packInvitation(invitation)]
    ops.push({ key: invitationsKey(shard, accountId), write: 'HSET', args })
    ops.push(...invitationLinkOps(shard, { accountId, linkId, invitationId, invitation }))
    due.push(linkDue(linkId, nowMs))
  }
  return { ops, due }
}

function setupOps({ shard, nowMs }: Context, accountId: string, linkId: string): Op[] {
  const bound = { purpose: 'setup', ownerId: accountId, invitationId: null, address: null, level: 'a' } as const
  return linkOps(shard, linkId, {
    ...bound,
    round: 0,
    madeAtMs: nowMs,
    endsAtMs: linkEndMs('setup', nowMs),
    operatorHash: null,
  })
}

function subjectOf({ administrators = [] }: CreateAccountBody, account: AccountState): ActSubject {
  const { accountId, name, status, approvedCap, monthlyCap } = account
  const after = { name, status, approvedCap, monthlyCap, administrators: administrators.length }
  return { targets: { accountId }, before: null, after }
}

/**
 * The shard of the next account. Takes the number of accounts of each shard, and the name of its worker and Redis
 * (`worker/redis`), empty if the same for all.
 */
export function placeAccount(counts: readonly number[], places: readonly string[] = []): number {
  const shares = new Map<string, number[]>()
  for (const shard of counts.keys()) {
    const place = places[shard] ?? ''
    const share = shares.get(place)
    if (share === undefined) shares.set(place, [shard])
    else share.push(shard)
  }
  const totals = [...shares.values()].map((share) => share.reduce((sum, shard) => sum + (counts[shard] ?? 0), 0))
  const [place = '', shards = [0]] = [...shares][totals.indexOf(Math.min(...totals))] ?? []
  const runsAt = [...shares.keys()].filter((other) => runnerOf(other) === runnerOf(place)).length
  return placeAmong(shards, { counts, together: Math.ceil(SHARDS_TOGETHER / runsAt) })
}

function runnerOf(place: string): string {
  return place.slice(0, place.indexOf('/'))
}

/** Chooses among the shards of one share: of the first few with room, the one with the fewest accounts. */
function placeAmong(
  shards: readonly number[],
  { counts, together }: { counts: readonly number[]; together: number },
): number {
  for (let first = 0; first < shards.length; first += together) {
    const shard = findLeastUsed(shards.slice(first, first + together), counts)
    if ((counts[shard] ?? 0) < ACCOUNTS_EACH) return shard
  }
  return findLeastUsed(shards, counts)
}

function findLeastUsed(shards: readonly number[], counts: readonly number[]): number {
  return shards.reduce((least, shard) => ((counts[shard] ?? 0) < (counts[least] ?? 0) ? shard : least))
}
