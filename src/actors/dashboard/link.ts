/**
 * link - links are made, mailed, and used once.
 *
 * Mail with a link waits in the lane of notices as `link.<id>.<ms>`, and its text is built from the row when it is
 * sent. Using a link makes a member (`setup`, `invitation`), or signs its user in (`sign-in`, `reset`).
 *
 * Spec link.once, link.purpose, link.mail, link.operator
 */

import type { CommandType, Due, Facts, Op, Refusal } from '../../../cluster/behaviour.ts'
import { MEMBERS_MAX } from '../../../schemas/limits.ts'
import type { Level } from '../../../schemas/route.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'
import { actOps } from '../../state/dashboard/act.ts'
import {
  isLaterThanUse,
  linkEndMs,
  linkFact,
  linkOfRow,
  linkOps,
  type StoredLink,
  usedLinkOp,
  usedLinksFact,
  usedLinksOps,
} from '../../state/dashboard/link.ts'
import {
  fieldsOfSettings,
  invitationsFact,
  membersFact,
  packMember,
  roleOf,
  SETTINGS_FIELDS,
  settingsFact,
  settingsOfRow,
  unpackMember,
} from '../../state/dashboard/member.ts'
import { invitationsKey, membersKey, NOTICE_LANE, settingsKey } from '../../state/dashboard/places.ts'
import { holdsLevel } from '../../state/dashboard/session.ts'
import { userFact, userSessionsFact } from '../../state/dashboard/user.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { changeUser, type UserChanged, userIn } from './user.ts'

const ITEM = /^link\.([0-9a-f]+)\.(\d+)$/

export interface MakeLinkBody {
  readonly linkId: string
  /** The link of a user or an account; its round is filled in here. */
  readonly link: Omit<StoredLink, 'round' | 'madeAtMs' | 'operatorHash' | 'removesFactors'>
  readonly isMailed: boolean
}

export const makeLink: CommandType<MakeLinkBody, { readonly kind: 'made' } | Refused> = {
  name: 'make-link',
  entities: () => [],
  counters: () => [],
  facts: ({ link: { purpose, ownerId } }, _states, { shard }) =>
    purpose === 'setup' ? [settingsFact(shard, ownerId)] : [userFact(shard, ownerId)],
  decide({ linkId, link, isMailed }, _states, facts, { shard, nowMs }) {
    const user = link.purpose === 'setup' ? null : userIn(facts, shard, link.ownerId)
    if (user === null && link.purpose !== 'setup') return refuse('not_found')
    const round = user === null ? settingsIn(facts, shard, link.ownerId).setups : user.linkRound
    return {
      kind: 'done',
      reply: { kind: 'made' },
      ops: linkOps(shard, linkId, { ...link, round, madeAtMs: nowMs, operatorHash: null }),
      due: isMailed ? [linkDue(linkId, nowMs)] : [],
    }
  },
}

export interface MakeAccountLinkBody {
  readonly accountId: string
  readonly linkId: string
  readonly address: string
  readonly level: Level
  /** SHA-256 of the key that orders it. */
  readonly operatorHash: string
  readonly removesFactors: boolean
  readonly by: OperatorAct
}

export interface AccountLinkMade {
  readonly kind: 'made'
  readonly endsAtMs: number
}

/** A link that an operator passes on. The log names the account and the role, never the address. */
export const makeAccountLink: CommandType<MakeAccountLinkBody, AccountLinkMade | Refused> = {
  name: 'make-account-link',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: () => [],
  decide({ accountId, linkId, address, level, removesFactors, operatorHash, by }, states, _facts, context) {
    const account = states.get<AccountState | null>(accountRef(accountId))
    if (account === null) return refuse('not_found')
    if (account.status === 'closed') return refuse('account_closed')
    const { shard, nowMs } = context
    const endsAtMs = linkEndMs('setup', nowMs)
    const bound = { purpose: 'setup', ownerId: accountId, invitationId: null, address, level } as const
    const { role } = roleOf(level)
    const after = { role, ...(removesFactors && { removesFactors }) }
    return {
      kind: 'done',
      reply: { kind: 'made', endsAtMs },
      ops: [
        ...linkOps(shard, linkId, { ...bound, round: 0, madeAtMs: nowMs, endsAtMs, operatorHash, removesFactors }),
        ...auditOps(context, by, { targets: { accountId }, before: null, after }),
      ],
    }
  },
}

export interface EndLinksBody {
  /** HMAC of the address. */
  readonly hmac: string
  /** When the used link was made; null to end all. */
  readonly madeAtMs: number | null
}

/**
 * Uses up the operator's links for an address, on the shard of its HMAC, so that of several used at once only one
 * works.
 */
export const endLinks: CommandType<EndLinksBody, { readonly kind: 'ended' } | Refused> = {
  name: 'end-links',
  entities: () => [],
  counters: () => [],
  facts: ({ hmac }, _states, { shard }) => [usedLinksFact(shard, hmac)],
  decide({ hmac, madeAtMs }, _states, facts, { shard, nowMs }) {
    const { key } = usedLinksFact(shard, hmac)
    if (madeAtMs !== null && !isLaterThanUse([facts.field(key, 'at')], madeAtMs)) return refuse('link_not_valid')
    return { kind: 'done', reply: { kind: 'ended' }, ops: usedLinksOps(shard, hmac, Math.max(nowMs, madeAtMs ?? 0)) }
  },
}

/** The item that mails a link. */
export function linkDue(linkId: string, nowMs: number): Due {
  return { lane: NOTICE_LANE, item: `link.${linkId}.${nowMs}`, atMs: nowMs }
}

/** The link of an item of the lane of notices; null if it is another notice. */
export function linkOfItem(item: string): { readonly linkId: string; readonly atMs: number } | null {
  const found = ITEM.exec(item)
  return found === null ? null : { linkId: found[1] as string, atMs: Number(found[2]) }
}

/** The link that a turn has read; null if it no longer works. */
export function linkIn(facts: Facts, shard: number, linkId: string, nowMs: number): StoredLink | null {
  const { key, fields } = linkFact(shard, linkId)
  return linkOfRow(
    fields.map((field) => facts.field(key, field)),
    nowMs,
  )
}

export interface UseUserLinkBody {
  readonly linkId: string
  readonly userId: string
  /** A new password, with which all sessions end; null: none. */
  readonly password: string | null
}

export const useUserLink: CommandType<UseUserLinkBody, UserChanged | Refused> = {
  name: 'use-user-link',
  entities: () => [],
  counters: () => [],
  facts: ({ linkId, userId }, _states, { shard }) => [
    linkFact(shard, linkId),
    userFact(shard, userId),
    userSessionsFact(shard, userId),
  ],
  decide({ linkId, userId, password }, states, facts, context, command) {
    const { shard, nowMs } = context
    const link = linkIn(facts, shard, linkId, nowMs)
    const user = userIn(facts, shard, userId)
    if (link === null || user === null || link.ownerId !== userId || link.round !== user.linkRound)
      return refuse('link_not_valid')
    const changes = { linkRound: user.linkRound + 1, ...(password !== null && { password }) }
    const body = { userId, changes, ...(password !== null && { endsAllBut: null }) }
    const changed = changeUser.decide(body, states, facts, context, { ...command, body })
    if (changed.kind !== 'done') return changed
    return { ...changed, ops: [...(changed.ops ?? []), usedLinkOp(shard, linkId, nowMs)] }
  },
}

export interface UseAccountLinkBody {
  readonly linkId: string
  readonly accountId: string
  readonly userId: string
  /** Deadline in ms (`join.ts`); absent from processes that do not send it. */
  readonly untilMs?: number
}

export interface MemberMade {
  readonly kind: 'member'
  readonly level: Level
}

/** Makes its user a member; an existing member keeps a higher role. */
export const useAccountLink: CommandType<UseAccountLinkBody, MemberMade | Refused> = {
  name: 'use-account-link',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: ({ linkId, accountId }, _states, { shard }) => [
    linkFact(shard, linkId),
    settingsFact(shard, accountId),
    membersFact(shard, accountId),
    invitationsFact(shard, accountId),
  ],
  decide({ linkId, accountId, userId, untilMs = Number.POSITIVE_INFINITY }, states, facts, context) {
    const { shard, nowMs } = context
    if (nowMs >= untilMs) return refuse('unavailable')
    const link = workingLink(facts, shard, { linkId, accountId, nowMs })
    if ('kind' in link) return link
    if (states.get<AccountState | null>(accountRef(accountId)) === null) return refuse('link_not_valid')
    const members = facts.hash(membersKey(shard, accountId))
    if (!members.has(userId) && members.size >= MEMBERS_MAX) return refuse('member_limit', { max: MEMBERS_MAX })
    const packed = members.get(userId)
    const known = packed === undefined ? null : unpackMember(packed)
    const level = known !== null && holdsLevel(known.level, link.level) ? known.level : link.level
    const member = packMember({ level, sinceMs: known?.sinceMs ?? nowMs })
    const ops: Op[] = [
      usedLinkOp(shard, linkId, nowMs),
      { key: membersKey(shard, accountId), write: 'HSET', args: [userId, member] },
    ]
    if (link.invitationId !== null)
      ops.push({ key: invitationsKey(shard, accountId), write: 'HDEL', args: [link.invitationId] })
    if (link.purpose === 'setup' && link.address === null) {
      const fields = fieldsOfSettings({ setups: link.round + 1 })
      ops.push({ key: settingsKey(shard, accountId), write: 'HSET', args: fields })
    }
    ops.push(...actOps(context, { accountId, userId, act: 'joinAccount', targets: { userId } }))
    return { kind: 'done', reply: { kind: 'member', level }, ops }
  },
}

/** The link if it is valid, which means that its siblings were not used, and its subject still exists. */
function workingLink(
  facts: Facts,
  shard: number,
  { linkId, accountId, nowMs }: { linkId: string; accountId: string; nowMs: number },
): (StoredLink & { readonly level: Level }) | Refusal<Refused> {
  const link = linkIn(facts, shard, linkId, nowMs)
  if (link === null || link.ownerId !== accountId || link.level === null) return refuse('link_not_valid')
  const { level, invitationId } = link
  const isThere =
    invitationId === null
      ? link.address !== null || link.round === settingsIn(facts, shard, accountId).setups
      : facts.hash(invitationsKey(shard, accountId)).has(invitationId)
  return isThere ? { ...link, level } : refuse('link_not_valid')
}

/** The settings of a turn that has read `settingsFact`. */
export function settingsIn(facts: Facts, shard: number, accountId: string) {
  const key = settingsKey(shard, accountId)
  return settingsOfRow(SETTINGS_FIELDS.map((field) => facts.field(key, field)))
}
