/**
 * tries - what somebody tries counts, of the client first, then of the address
 *
 * One that the client's limit refuses counts nowhere; one that the address's refuses stays counted for the client.
 *
 * Spec session.limits
 */

import * as limits from '../../schemas/limits.ts'
import type { CountTryBody } from '../actors/dashboard/count-try.ts'
import type { Answer } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import { bucketOfHmac } from '../state/person.ts'
import type { DashboardDeps } from './deps.ts'

export type TryKind = 'sign-in' | 'mailed-link' | 'invitation'

const MAX: Readonly<Record<TryKind, { readonly address: number; readonly client: number }>> = {
  'sign-in': { address: limits.SIGN_INS_OF_ADDRESS_MAX, client: limits.SIGN_INS_OF_CLIENT_MAX },
  'mailed-link': { address: limits.MAILED_LINKS_OF_ADDRESS_MAX, client: limits.MAILED_LINKS_OF_CLIENT_MAX },
  invitation: { address: limits.INVITATIONS_OF_ADDRESS_MAX, client: limits.INVITATIONS_OF_CLIENT_MAX },
}

/** Counts a try. In: who tries; `address` null: nobody can be locked out by it. Out: the refusal, or null. */
export async function refuseTry(
  deps: DashboardDeps,
  kind: TryKind,
  { client, address }: { readonly client: string; readonly address: string | null },
): Promise<Answer | null> {
  const { loginHmac, clientHmac } = deps.secrets
  const ofClient = await count(deps, { by: 'c', hmac: clientHmac(client) }, kind)
  if (ofClient !== null || address === null) return ofClient
  return count(deps, { by: 'a', hmac: loginHmac(address) }, kind)
}

async function count(
  deps: DashboardDeps,
  { by, hmac }: { readonly by: 'a' | 'c'; readonly hmac: string },
  kind: TryKind,
): Promise<Answer | null> {
  const body: CountTryBody = { name: `${kind}.${by}.${hmac}`, max: MAX[kind][by === 'a' ? 'address' : 'client'] }
  const { answer } = await giveOrder(deps, bucketOfHmac(hmac), { name: 'count-try', body })
  return answer ?? null
}
