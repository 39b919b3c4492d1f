/**
 * refusal - the refusal of a turn, with a code of the table and the additional fields of its answer.
 *
 * Instants in `extra` are milliseconds under names that end in `AtMs`; the edge writes them as `…At`.
 */

import type { Refusal } from '../../../cluster/behaviour.ts'
import type { RefusalCode } from '../../../schemas/refusals.ts'

/** The reply to a refused command. */
export interface Refused {
  readonly kind: 'refused'
  readonly code: RefusalCode
  readonly extra: Readonly<Record<string, string | number>>
}

/** Whether a reply is a refusal. */
export function isRefused(reply: { readonly kind: string }): reply is Refused {
  return reply.kind === 'refused'
}

/** A decision that refuses and records nothing. */
export function refuse(code: RefusalCode, extra: Refused['extra'] = {}): Refusal<Refused> {
  return { kind: 'refuse', answer: { kind: 'refused', code, extra } }
}
