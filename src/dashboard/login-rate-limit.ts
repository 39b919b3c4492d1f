/**
 * login-rate-limit - counts tries, first of the client, then of the address
 *
 * A try that the limit of the client refuses is not counted; one that the limit of the address refuses counts for the
 * client. A try from a device in which the user has signed in counts for that device instead of the address, so that
 * strangers who try the address do not lock the user out. A confirmation counts for its signed-in user alone.
 *
 * Spec session.limits
 */

import { homeShard } from '../../cluster/id.ts'
import * as limits from '../../schemas/limits.ts'
import type { CountTryBody } from '../actors/dashboard/count-try.ts'
import { readDevice } from '../http/dashboard-edge.ts'
import type { Answer } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import type { User } from '../state/dashboard/user.ts'
import { bucketOfHmac } from '../state/hash-fraction.ts'
import { readUserByLogin } from '../views/dashboard/user.ts'
import type { DashboardDeps } from './deps.ts'
import { type Device, parseDevice } from './factor/device.ts'

export type TryKind = 'sign-in' | 'mailed-link' | 'invitation'

const MAX: Readonly<Record<TryKind, { readonly address: number; readonly client: number }>> = {
  'sign-in': { address: limits.SIGN_INS_OF_ADDRESS_MAX, client: limits.SIGN_INS_OF_CLIENT_MAX },
  'mailed-link': { address: limits.MAILED_LINKS_OF_ADDRESS_MAX, client: limits.MAILED_LINKS_OF_CLIENT_MAX },
  invitation: { address: limits.INVITATIONS_OF_ADDRESS_MAX, client: limits.INVITATIONS_OF_CLIENT_MAX },
}

/** A try that is refused. */
export interface TryRefused {
  readonly answer: Answer
  /**
   * Whether the address or its device has reached its limit; otherwise its client has, or nothing could be counted.
   */
  readonly isOfAddress: boolean
}

interface Trying {
  readonly client: string
  /** Null if it cannot lock out a user. */
  readonly address: string | null
  /** Cookies of the request. */
  readonly cookies: string
}

/** Counts a try. Takes the trying client and address. Returns the refusal, or null. */
export async function refuseTry(deps: DashboardDeps, kind: TryKind, of: Trying): Promise<Answer | null> {
  return (await judgeTry(deps, kind, of))?.answer ?? null
}

/** The same, with whose limit refuses. */
export async function judgeTry(
  deps: DashboardDeps,
  kind: TryKind,
  { client, address, cookies }: Trying,
): Promise<TryRefused | null> {
  const { loginHmac, clientHmac } = deps.secrets
  const ofClient = await count(deps, { by: 'c', hmac: clientHmac(client) }, kind)
  if (ofClient !== null) return { answer: ofClient, isOfAddress: false }
  if (address === null) return null
  const device = await knownDevice(deps, cookies, address)
  const ofAddress =
    device === null
      ? await count(deps, { by: 'a', hmac: loginHmac(address) }, kind)
      : await countTry(deps, homeShard(device.userId), { name: `${kind}.d.${device.deviceId}`, max: MAX[kind].address })
  return ofAddress && { answer: ofAddress, isOfAddress: 'status' in ofAddress && ofAddress.status === 429 }
}

/** The user's device named in a request's cookies; null if it is not one of this user's. */
export function deviceIn({ secrets, edge }: DashboardDeps, cookies: string, user: User): string | null {
  const device = parseDevice(secrets.deviceKey, readDevice(edge, cookies))
  return device?.userId === user.userId && user.devices.includes(device.deviceId) ? device.deviceId : null
}

/**
 * The device of the user with an address. The store is asked only for a cookie that this installation made, so that
 * the time of an answer does not show a stranger whether the address is known.
 */
async function knownDevice(deps: DashboardDeps, cookies: string, address: string): Promise<Device | null> {
  if (parseDevice(deps.secrets.deviceKey, readDevice(deps.edge, cookies)) === null) return null
  const user = await readUserByLogin(deps.read, deps.secrets.loginHmac(address))
  if (user === null || user === 'unavailable') return null
  const deviceId = deviceIn(deps, cookies, user)
  return deviceId === null ? null : { userId: user.userId, deviceId }
}

/** Counts a confirmation of a user, in all sessions and accounts. Returns the refusal, or null. */
export function refuseConfirmation(deps: DashboardDeps, userId: string): Promise<Answer | null> {
  const body = { name: `confirm.u.${userId}`, max: limits.CONFIRMATIONS_OF_USER_MAX }
  return countTry(deps, homeShard(userId), body)
}

/** Whether reaching a limit is news: only once while it lasts. Takes the counted subject. */
export async function isLimitNews(deps: DashboardDeps, shard: number, counted: string): Promise<boolean> {
  return (await countTry(deps, shard, { name: `told.${counted}`, max: 1 })) === null
}

function count(
  deps: DashboardDeps,
  { by, hmac }: { readonly by: 'a' | 'c'; readonly hmac: string },
  kind: TryKind,
): Promise<Answer | null> {
  const max = MAX[kind][by === 'a' ? 'address' : 'client']
  return countTry(deps, bucketOfHmac(hmac), { name: `${kind}.${by}.${hmac}`, max })
}

async function countTry(deps: DashboardDeps, shard: number, body: CountTryBody): Promise<Answer | null> {
  const { answer } = await giveOrder(deps, shard, { name: 'count-try', body })
  return answer ?? null
}
