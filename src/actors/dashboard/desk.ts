/**
 * desk - operator sessions: opened with the key or a link made with it, and ended.
 *
 * Sessions and links end with the key: reading a session checks the key too.
 *
 * Keys: key, desk-links
 *
 * Spec operator.session, operator.link, operator.audit
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { DESK_LINK_MINUTES, OPERATOR_SESSION_HOURS } from '../../../schemas/limits.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'
import { HOUR_MS, MINUTE_MS } from '../../state/calendar.ts'
import {
  type DeskKey,
  deskLinkIn,
  deskLinkOps,
  deskLinksFact,
  deskSessionOps,
  unpackDeskLink,
} from '../../state/dashboard/desk.ts'
import { apiKeyKey } from '../../state/keys.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'

/** Links that may wait to be used; of more the oldest go. */
const LINKS_MAX = 100

export interface DeskOpened {
  readonly kind: 'opened'
  readonly endsAtMs: number
}

export interface OpenDeskBody extends DeskKey {
  /** SHA-256 of the session's token, hex. */
  readonly hash: string
  readonly by: OperatorAct
}

export const openDesk: CommandType<OpenDeskBody, DeskOpened> = {
  name: 'open-desk',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ hash, operatorHash, tokenId, by }, _states, _facts, context) {
    const endsAtMs = context.nowMs + OPERATOR_SESSION_HOURS * HOUR_MS
    const subject = { targets: { tokenId }, before: null, after: { endsAtMs } }
    return {
      kind: 'done',
      reply: { kind: 'opened', endsAtMs },
      ops: [...deskSessionOps(hash, { operatorHash, tokenId }, endsAtMs), ...auditOps(context, by, subject)],
    }
  },
}

export interface EndDeskBody {
  readonly hash: string
  readonly tokenId: string
  readonly by: OperatorAct
}

export const endDesk: CommandType<EndDeskBody, { readonly kind: 'ended' }> = {
  name: 'end-desk',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ hash, tokenId, by }, _states, _facts, context) {
    const op: Op = { key: apiKeyKey(context.shard, hash), write: 'UNLINK', args: [] }
    const subject = { targets: { tokenId }, before: null, after: null }
    return { kind: 'done', reply: { kind: 'ended' }, ops: [op, ...auditOps(context, by, subject)] }
  },
}

export interface MakeDeskLinkBody extends DeskKey {
  readonly linkId: string
  readonly by: OperatorAct
}

export const makeDeskLink: CommandType<MakeDeskLinkBody, { readonly kind: 'made'; readonly endsAtMs: number }> = {
  name: 'make-desk-link',
  entities: () => [],
  counters: () => [],
  facts: () => [deskLinksFact()],
  decide({ linkId, operatorHash, tokenId, by }, _states, facts, context) {
    const endsAtMs = context.nowMs + DESK_LINK_MINUTES * MINUTE_MS
    const { key } = deskLinksFact()
    const known = [...facts.hash(key)].map(([id, packed]) => ({ id, endsAtMs: unpackDeskLink(packed).endsAtMs }))
    const living = known
      .filter((one) => one.endsAtMs > context.nowMs)
      .sort((one, other) => other.endsAtMs - one.endsAtMs)
    const kept = living.slice(0, LINKS_MAX - 1)
    const gone = known.filter((one) => !kept.includes(one)).map(({ id }) => id)
    const ops: Op[] = gone.length === 0 ? [] : [{ key, write: 'HDEL', args: gone }]
    ops.push(...deskLinkOps(linkId, { operatorHash, tokenId, endsAtMs }, kept))
    const subject = { targets: { tokenId }, before: null, after: { endsAtMs } }
    return { kind: 'done', reply: { kind: 'made', endsAtMs }, ops: [...ops, ...auditOps(context, by, subject)] }
  },
}

export interface UseDeskLinkBody {
  readonly linkId: string
  /** SHA-256 of the session's token, hex. */
  readonly hash: string
  readonly note: string | null
}

/** Opens a session by a link, and ends the other links of its key. */
export const useDeskLink: CommandType<UseDeskLinkBody, DeskOpened | Refused> = {
  name: 'use-desk-link',
  entities: () => [],
  counters: () => [],
  facts: () => [deskLinksFact()],
  decide({ linkId, hash, note }, states, facts, context, command) {
    const { key } = deskLinksFact()
    const links = facts.hash(key)
    const link = deskLinkIn(links, linkId, context.nowMs)
    if (link === null) return refuse('link_not_valid')
    const { operatorHash, tokenId } = link
    const by: OperatorAct = { actor: tokenId, act: 'useDeskLink', note }
    const body = { hash, operatorHash, tokenId, by }
    const opened = openDesk.decide(body, states, facts, context, { ...command, body })
    if (opened.kind !== 'done') return opened
    const used = [...links].filter(([, packed]) => unpackDeskLink(packed).operatorHash === operatorHash)
    const op: Op = { key, write: 'HDEL', args: used.map(([id]) => id) }
    return { ...opened, ops: [...(opened.ops ?? []), op] }
  },
}
