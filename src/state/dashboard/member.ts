/**
 * member - membership of a user in an account, invitations, and the settings of its administrators.
 *
 * Keys: `members:<account>` hash userId -> `[level, since ms]`; `invitations:<account>` hash invitationId ->
 * `[address, level, created ms, sent ms]`; `settings:<account>` hash `hideContent`, `application`
 * (`[volume, purpose, website, ms]`), `setups` (how often a link of the first start was used), `secondFactor`
 *
 * Spec member.role, member.settings, invitation.send
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import type { MemberRole } from '../../../schemas/dashboard/session.ts'
import { INVITATION_DAYS } from '../../../schemas/limits.ts'
import type { Level } from '../../../schemas/route.ts'
import { DAY_MS } from '../calendar.ts'
import { invitationsKey, membersKey, settingsKey } from './places.ts'

/** A member of an account. */
export interface StoredMember {
  readonly level: Level
  readonly sinceMs: number
}

/** An open invitation. */
export interface StoredInvitation {
  readonly address: string
  readonly level: Level
  readonly createdAtMs: number
  readonly sentAtMs: number
}

/** An account's application for approval. */
export interface Application {
  readonly monthlyVolume: number
  readonly purpose: string
  readonly website: string | null
  readonly atMs: number
}

/** The settings of an account's administrators. */
export interface Settings {
  readonly requireSecondFactor: boolean
  readonly hideContent: boolean
  readonly application: Application | null
  readonly setups: number
}

export const SETTINGS_FIELDS = ['hideContent', 'application', 'setups', 'secondFactor'] as const

/** The level of a role. */
export function levelOf(role: MemberRole, readOnly: boolean): Level {
  if (role === 'administrator') return 'a'
  return readOnly ? 'r' : 'w'
}

/** The role of a level. */
export function roleOf(level: Level): { readonly role: MemberRole; readonly readOnly: boolean } {
  return { role: level === 'a' ? 'administrator' : 'member', readOnly: level === 'r' }
}

/** Reads all members, of which an account has a bounded number. */
export function membersFact(shard: number, accountId: string): FactOf<'hash'> {
  return { read: 'hash', key: membersKey(shard, accountId) }
}

/** The read of all invitations. */
export function invitationsFact(shard: number, accountId: string): FactOf<'hash'> {
  return { read: 'hash', key: invitationsKey(shard, accountId) }
}

/** The read of the settings. */
export function settingsFact(shard: number, accountId: string): FactOf<'fields'> {
  return { read: 'fields', key: settingsKey(shard, accountId), fields: SETTINGS_FIELDS }
}

export function packMember({ level, sinceMs }: StoredMember): string {
  return JSON.stringify([level, sinceMs])
}

export function unpackMember(text: string): StoredMember {
  const [level, sinceMs] = JSON.parse(text) as [Level, number]
  return { level, sinceMs }
}

export function packInvitation({ address, level, createdAtMs, sentAtMs }: StoredInvitation): string {
  return JSON.stringify([address, level, createdAtMs, sentAtMs])
}

export function unpackInvitation(text: string): StoredInvitation {
  const [address, level, createdAtMs, sentAtMs] = JSON.parse(text) as [string, Level, number, number]
  return { address, level, createdAtMs, sentAtMs }
}

/** When an invitation ends by itself. */
export function invitationEndMs({ sentAtMs }: Pick<StoredInvitation, 'sentAtMs'>): number {
  return sentAtMs + INVITATION_DAYS * DAY_MS
}

/** The settings read by `settingsFact`. */
export function settingsOfRow(row: readonly (string | null)[]): Settings {
  const [hideContent, application, setups, secondFactor] = row
  return {
    requireSecondFactor: secondFactor === '1',
    hideContent: hideContent === '1',
    application: application ? unpackApplication(application) : null,
    setups: Number(setups ?? 0),
  }
}

/** The fields of changed settings. */
export function fieldsOfSettings(settings: Partial<Settings>): string[] {
  const { requireSecondFactor, hideContent, application, setups } = settings
  const flag = (value: boolean | undefined) => (value === undefined ? undefined : value ? '1' : '')
  const fields: Record<string, string | undefined> = {
    hideContent: flag(hideContent),
    application: application === null ? '' : application && packApplication(application),
    setups: setups?.toString(),
    secondFactor: flag(requireSecondFactor),
  }
  return Object.entries(fields).flatMap(([field, value]) => (value === undefined ? [] : [field, value]))
}

function packApplication({ monthlyVolume, purpose, website, atMs }: Application): string {
  return JSON.stringify([monthlyVolume, purpose, website, atMs])
}

function unpackApplication(text: string): Application {
  const [monthlyVolume, purpose, website, atMs] = JSON.parse(text) as [number, string, string | null, number]
  return { monthlyVolume, purpose, website, atMs }
}
