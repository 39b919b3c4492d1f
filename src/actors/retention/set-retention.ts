/**
 * set-retention - an account, a server or a stream says for how long the text and HTML of its mail are kept, an
 * account and the installation for how many months the log.
 *
 * A shorter time is applied to stored content within a day. A longer one applies to content that has not been removed
 * yet.
 *
 * The months of the installation are written to every shard, on each by a command of its own.
 *
 * Key: `retention`
 *
 * Spec retention.settings, refusal.order
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { auditOps, auditOpsOf, computeDifference, type OperatorAct } from '../../state/audit.ts'
import { retentionKey } from '../../state/keys.ts'
import { installationFact, installationMonths, MONTHS_FIELD } from '../../state/log-retention.ts'
import { contentDue } from '../../state/message/retention.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import {
  type AccountOrderer,
  accountOfOrder,
  type ServerOrder,
  serverOfOrder,
  serverOrderEntities,
} from '../authorization/server.ts'
import {
  authorizeTenant,
  refuseClosed,
  type StreamOrder,
  streamOfOrder,
  streamOrderEntities,
} from '../authorization/stream.ts'

/** Any subset; null inherits the value. */
export interface RetentionChanges {
  readonly sentContentDays?: number | null
}

/** Any subset; null: as the installation says. */
export interface AccountRetentionChanges extends RetentionChanges {
  readonly logRetentionMonths?: number | null
}

/** The states that decide it; null: not asked for. */
export interface RetentionReply {
  readonly kind: 'retention'
  /** Of the installation; null: the default, or not asked for. */
  readonly months: number | null
  readonly account: AccountState
  readonly server: ServerState | null
  readonly stream: StreamState | null
}

export interface SetAccountRetentionBody extends AccountOrderer {
  readonly changes: AccountRetentionChanges
}

export interface SetServerRetentionBody extends ServerOrder {
  readonly changes: RetentionChanges
}

export interface SetStreamRetentionBody extends StreamOrder {
  readonly changes: RetentionChanges
}

export const setAccountRetention: CommandType<SetAccountRetentionBody, RetentionReply | Refused> = {
  name: 'set-account-retention',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: (_body, _states, { shard }) => [installationFact(shard)],
  decide(body, states, facts, context) {
    const account = accountOfOrder(body, states, { facts, context })
    if ('kind' in account) return account
    const { accountId, changes } = body
    const months = installationMonths(facts.field(retentionKey(context.shard), MONTHS_FIELD))
    const changed = { ...account, ...changes }
    const ops: Op[] = auditOpsOf(context, body.by, { targets: { accountId }, ...computeDifference(account, changed) })
    const reply: RetentionReply = { kind: 'retention', months, account: changed, server: null, stream: null }
    if (Object.keys(changes).length === 0) return { kind: 'done', reply, ops }
    // The daily sweep of each of its servers finds the new value.
    return { kind: 'done', reply, ops, events: [{ ref: accountRef(accountId), event: { type: 'patched', changes } }] }
  },
}

export const setServerRetention: CommandType<SetServerRetentionBody, RetentionReply | Refused> = {
  name: 'set-server-retention',
  entities: serverOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const account = accountOfOrder(body, states, { facts, context })
    if ('kind' in account) return account
    const server = serverOfOrder(body, states)
    if (server === null) return refuse('not_found')
    const { accountId, serverId } = server
    const changed = { ...server, ...body.changes }
    const ops: Op[] = auditOpsOf(context, body.by, {
      targets: { accountId, serverId },
      ...computeDifference(server, changed),
    })
    const reply: RetentionReply = { kind: 'retention', months: null, account, server: changed, stream: null }
    if (Object.keys(body.changes).length === 0) return { kind: 'done', reply, ops }
    const changes = { ...body.changes, contentChanges: (server.contentChanges ?? 0) + 1 }
    return {
      kind: 'done',
      reply,
      ops,
      events: [{ ref: serverRef(serverId), event: { type: 'patched', changes } }],
      due: [contentDue(serverId, context.nowMs)],
    }
  },
}

export const setStreamRetention: CommandType<SetStreamRetentionBody, RetentionReply | Refused> = {
  name: 'set-stream-retention',
  entities: streamOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const tenant = authorizeTenant(body, states, { facts, context })
    if ('kind' in tenant) return tenant
    const stream = streamOfOrder(body, states)
    // Whether the body is valid depends on the stream's kind, and this refusal comes before the account's state.
    if (stream?.kind === 'inbound' && body.changes.sentContentDays !== undefined) return refuse('invalid_request')
    const refusal = refuseClosed(tenant)
    if (refusal !== null) return refusal
    if (stream === null) return refuse('not_found')
    const { account, server } = tenant
    const { serverId } = server
    const { sentContentDays: days } = body.changes
    if (days === undefined) return { kind: 'done', reply: { kind: 'retention', months: null, account, server, stream } }
    const known = server.streamContentDays ?? []
    const streamContentDays = days === null || known.includes(days) ? known : [...known, days]
    const changes = { streamContentDays, contentChanges: (server.contentChanges ?? 0) + 1 }
    return {
      kind: 'done',
      reply: {
        kind: 'retention',
        months: null,
        account,
        server: { ...server, ...changes },
        stream: { ...stream, sentContentDays: days },
      },
      events: [
        { ref: streamRef(stream.streamId), event: { type: 'patched', changes: { sentContentDays: days } } },
        { ref: serverRef(serverId), event: { type: 'patched', changes } },
      ],
      due: [contentDue(serverId, context.nowMs)],
    }
  },
}

export interface SetInstallationRetentionBody {
  /** Null: the default; absent: as it is. */
  readonly logRetentionMonths?: number | null
  /** On the shard that is written last; null on the others. */
  readonly by: OperatorAct | null
}

/** The installation's months on this shard. */
export interface InstallationRetentionReply {
  readonly kind: 'installation'
  readonly logRetentionMonths: number | null
}

export const setInstallationRetention: CommandType<SetInstallationRetentionBody, InstallationRetentionReply> = {
  name: 'set-installation-retention',
  entities: () => [],
  counters: () => [],
  facts: (_body, _states, { shard }) => [installationFact(shard)],
  decide({ logRetentionMonths: months, by }, _states, facts, context) {
    const key = retentionKey(context.shard)
    const before = installationMonths(facts.field(key, MONTHS_FIELD))
    const after = months === undefined ? before : months
    const change = { logRetentionMonths: before }
    const ops: Op[] =
      by === null
        ? []
        : auditOps(context, by, { targets: {}, ...computeDifference(change, { logRetentionMonths: after }) })
    if (after !== before && after === null) ops.push({ key, write: 'HDEL', args: [MONTHS_FIELD] })
    if (after !== before && after !== null) ops.push({ key, write: 'HSET', args: [MONTHS_FIELD, String(after)] })
    return { kind: 'done', reply: { kind: 'installation', logRetentionMonths: after }, ops }
  },
}
