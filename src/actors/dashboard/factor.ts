/**
 * factor - uses and changes second factors of a user, on the shard of the user's address.
 *
 * Each proof is used once: a time step of an authenticator, a recovery code, a counter of a passkey, and the sign-in
 * step that it completes. The verification belongs to the user's password at that time: if that has changed, nothing
 * happens. Adding the first factor ends all sessions opened without one.
 *
 * Spec session.factor, session.passkey
 */

import type { CommandType, Context, Facts, Op, Refusal } from '../../../cluster/behaviour.ts'
import { PASSKEYS_MAX } from '../../../schemas/limits.ts'
import { type Step, stepFact, takenOps } from '../../state/dashboard/challenge.ts'
import { userKey } from '../../state/dashboard/places.ts'
import {
  fieldsOfUser,
  hasFactor,
  type NamedSession,
  NO_FACTORS,
  type StoredPasskey,
  type User,
  userFact,
  userSessionsFact,
} from '../../state/dashboard/user.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { sessionsOf, userIn } from './user.ts'
import { userNoticeDues } from './user-notice.ts'

/** A verified factor. */
export type Shown =
  | { readonly kind: 'totp'; readonly step: number }
  | { readonly kind: 'code'; readonly hmac: string }
  | { readonly kind: 'passkey'; readonly passkeyId: string; readonly counter: number }

export interface TakeStepBody {
  readonly userId: string
  /** Null for a confirmation by code, without a step. */
  readonly step: Step | null
  readonly expects: Pick<User, 'password'>
  readonly shown: Shown
}

export const takeStep: CommandType<TakeStepBody, { readonly kind: 'taken' } | Refused> = {
  name: 'take-step',
  entities: () => [],
  counters: () => [],
  facts: ({ userId, step }, _states, { shard }) => [
    userFact(shard, userId),
    ...(step === null ? [] : [stepFact(shard, step)]),
  ],
  decide({ userId, step, expects, shown }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, userId)
    if (user === null || user.password !== expects.password) return refuse('sign_in_failed')
    const changes = changesOfUse(user, shown, nowMs)
    if (changes === null || isTaken(facts, shard, { step, nowMs })) return refuse('sign_in_failed')
    return { kind: 'done', reply: { kind: 'taken' }, ops: makeWrites(shard, { userId, changes, step, nowMs }) }
  },
}

/** The changes by using a factor; null if it was used before, or no longer belongs to the user. */
function changesOfUse(user: User, shown: Shown, nowMs: number): Partial<User> | null {
  if (shown.kind === 'totp') {
    return user.totp !== null && shown.step > user.totpStep ? { totpStep: shown.step } : null
  }
  if (shown.kind === 'code') {
    const codes = user.codes.filter((hmac) => hmac !== shown.hmac)
    return codes.length < user.codes.length ? { codes } : null
  }
  const { passkeyId, counter } = shown
  const known = user.passkeys.find((one) => one.passkeyId === passkeyId)
  // WebAuthn 7.2 step 22 treats a passkey whose counter has not increased as a copy.
  if (known === undefined || (known.counter > 0 && counter <= known.counter)) return null
  const used = { ...known, counter, usedAtMs: nowMs }
  return { passkeys: user.passkeys.map((one) => (one === known ? used : one)) }
}

/** A change of a user's factors; `codes` are recovery codes, stored if the user has none. */
export type FactorChange =
  | { readonly kind: 'totp'; readonly sealed: string; readonly step: number; readonly codes: readonly string[] }
  | {
      readonly kind: 'passkey'
      readonly passkey: Omit<StoredPasskey, 'passkeyId' | 'createdAtMs' | 'usedAtMs'>
      readonly codes: readonly string[]
    }
  | { readonly kind: 'codes'; readonly codes: readonly string[] }
  | { readonly kind: 'rename'; readonly passkeyId: string; readonly name: string }
  | { readonly kind: 'remove-totp' }
  | { readonly kind: 'remove-passkey'; readonly passkeyId: string }

export interface ChangeFactorsBody {
  readonly userId: string
  /** Null for a single order without steps. */
  readonly step: Step | null
  readonly change: FactorChange
  /** Of whom it was asked. */
  readonly expects: Pick<User, 'password'>
  /** The session that asks. */
  readonly sessionId: string
  /** Whether a factor was just used in it, because a user with a factor cannot change anything without it. */
  readonly showsFactor: boolean
  /** Whether the last factor may go. */
  readonly mayBeLast: boolean
}

export interface FactorsChanged {
  readonly kind: 'factors'
  readonly passkeys: readonly StoredPasskey[]
  /** Whether the codes that came with the change are the user's now. */
  readonly takesCodes: boolean
  /** Sessions that end with the first factor: first their rows are ended, then their list entries are removed. */
  readonly ended: readonly NamedSession[]
}

export const changeFactors: CommandType<ChangeFactorsBody, FactorsChanged | Refused> = {
  name: 'change-factors',
  entities: () => [],
  counters: () => [],
  facts: ({ userId, step }, _states, { shard }) => [
    userFact(shard, userId),
    userSessionsFact(shard, userId),
    ...(step === null ? [] : [stepFact(shard, step)]),
  ],
  decide(body, _states, facts, context) {
    const { userId, step, change, sessionId } = body
    const { shard, nowMs } = context
    const user = userIn(facts, shard, userId)
    if (user === null) return refuse('not_found')
    const refused = refuseChange(user, body)
    if (refused !== null) return refused
    if (isTaken(facts, shard, { step, nowMs })) return refuse('sign_in_failed')
    const changed = decideChanges(user, change, context)
    if (changed === null) return refuse('not_found')
    const isLast = !hasFactor({ ...user, ...changed })
    if (isLast && !body.mayBeLast) return refuse('second_factor_required')
    const others = sessionsOf(facts, shard, userId).filter((one) => one.sessionId !== sessionId)
    const takesCodes = 'codes' in change && (change.kind === 'codes' || user.codes.length === 0)
    const codes = takesCodes ? { codes: change.codes } : {}
    const changes = isLast ? NO_FACTORS : { ...changed, ...codes }
    return {
      kind: 'done',
      reply: {
        kind: 'factors',
        passkeys: changes.passkeys ?? user.passkeys,
        takesCodes,
        ended: hasFactor(user) ? [] : others,
      },
      ops: makeWrites(shard, { userId, changes, step, nowMs }),
      due: userNoticeDues(change.kind, userId, nowMs),
    }
  },
}

/** Refuses a change for an outdated password, without a required factor, or past a limit; otherwise null. */
function refuseChange(
  user: User,
  { change, expects, showsFactor }: Pick<ChangeFactorsBody, 'change' | 'expects' | 'showsFactor'>,
): Refusal<Refused> | null {
  if (user.password !== expects.password) return refuse('sign_in_failed')
  if (hasFactor(user) && !showsFactor) return refuse('confirmation_required')
  if (change.kind === 'codes' && !hasFactor(user)) return refuse('second_factor_required')
  const isFull = change.kind === 'passkey' && user.passkeys.length >= PASSKEYS_MAX
  return isFull ? refuse('passkey_limit', { max: PASSKEYS_MAX }) : null
}

/** Null: there is no such factor. */
function decideChanges(
  user: User,
  change: FactorChange,
  context: Pick<Context, 'nowMs' | 'newId'>,
): Partial<User> | null {
  switch (change.kind) {
    case 'totp':
      return { totp: change.sealed, totpStep: change.step }
    case 'passkey': {
      const added = { ...change.passkey, passkeyId: context.newId(), createdAtMs: context.nowMs, usedAtMs: null }
      const others = user.passkeys.filter(({ credentialId }) => credentialId !== added.credentialId)
      return { passkeys: [...others, added] }
    }
    case 'codes':
      return {}
    case 'rename':
      return passkeysWith(user, change.passkeyId, (one) => [{ ...one, name: change.name }])
    case 'remove-passkey':
      return passkeysWith(user, change.passkeyId, () => [])
    case 'remove-totp':
      return user.totp === null ? null : { totp: null, totpStep: 0 }
  }
}

function passkeysWith(
  { passkeys }: User,
  passkeyId: string,
  change: (passkey: StoredPasskey) => readonly StoredPasskey[],
): Partial<User> | null {
  if (!passkeys.some((one) => one.passkeyId === passkeyId)) return null
  return { passkeys: passkeys.flatMap((one) => (one.passkeyId === passkeyId ? change(one) : [one])) }
}

/** Whether a step was taken before, or its time is over. */
function isTaken(facts: Facts, shard: number, of: { readonly step: Step | null; readonly nowMs: number }): boolean {
  const { step, nowMs } = of
  if (step === null) return false
  return step.endsAtMs <= nowMs || facts.field(stepFact(shard, step).key, 'used') !== null
}

function makeWrites(
  shard: number,
  of: {
    readonly userId: string
    readonly changes: Partial<Omit<User, 'userId'>>
    readonly step: Step | null
    readonly nowMs: number
  },
): Op[] {
  const { userId, changes, step, nowMs } = of
  const fields = fieldsOfUser(changes)
  return [
    ...(fields.length === 0 ? [] : [{ key: userKey(shard, userId), write: 'HSET' as const, args: fields }]),
    ...(step === null ? [] : takenOps(shard, step, nowMs)),
  ]
}
