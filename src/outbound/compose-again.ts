/**
 * compose-again - the bytes of a stored message as they go out: composed as at its attempts, signed with present keys
 *
 * Without a domain's key the message has no signature, because it is only shown, not sent.
 *
 * Spec message.raw
 */

import type { AttemptJob } from '../actors/message/prepare-attempt.ts'
import { domainOf, type Insist, type MailInputDeps, readMailInput } from './mail-input.ts'
import type { FindKey } from './signing-keys.ts'
import type { SigningKey } from './thread/sign.ts'
import type { MailRoom } from './threads.ts'

export interface ComposeAgainDeps extends MailInputDeps {
  readonly findKey: FindKey
  /** Signs in addition to the domain's key; null: nothing does. */
  readonly serviceKey: SigningKey | null
  readonly compose: MailRoom['compose']
  /** The store's time in ms. */
  readonly nowMs: () => number
}

/** Composes the copy of one recipient. `expired` means that its content is no longer stored. */
export type ComposeAgain = (job: AttemptJob) => Promise<Uint8Array | 'expired' | 'unbuildable' | 'unavailable'>

/** Makes the composer. */
export function makeComposeAgain(deps: ComposeAgainDeps): ComposeAgain {
  return async (job) => {
    try {
      const message = await readMailInput(deps, job, readOnce)
      if (message === null) return 'expired'
      const { accountId, from } = job.message
      const order = { accountId, domain: domainOf(from), acceptedAtMs: deps.nowMs(), keySinceMs: null }
      const own = await readOnce(() => deps.findKey(order))
      const keys = [own, deps.serviceKey].filter((key) => key !== null)
      return await deps.compose({ message, compose: { keys } })
    } catch (error) {
      if (error instanceof NoAnswer) return 'unavailable'
      throw error
    }
  }
}

class NoAnswer extends Error {}

/** The store is asked only once, because a client waits for the result. */
const readOnce: Insist = async (read) => {
  const value = await read()
  if (value === undefined) throw new NoAnswer('The store did not answer')
  return value
}
