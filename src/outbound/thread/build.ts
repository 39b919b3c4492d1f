/** build - the bytes of a job's message, and the outcome of one that may not be sent */

import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { makeUnasked } from '../../mail/classify.ts'
import { composeMessage } from '../../mail/compose/compose.ts'
import { composePlain } from '../../mail/compose/compose-plain.ts'
import type { ListField } from '../../mail/compose/list-fields.ts'
import { composeRaw, type MailInput } from '../../mail/compose/raw.ts'
import type { MailOutcome } from './thread-job.ts'

/** Colon, blank and line end of a field. */
const FIELD_FRAME_BYTES = 4

/** The bytes of a message; null when it cannot be built. Never throws. */
export function buildMessage(input: MailInput): Buffer | null {
  try {
    if ('raw' in input) return composeRaw(input)
    return composePlain(input) ?? composeMessage(input)
  } catch {
    // If its content makes the composer throw, only this message fails, not the thread and all its other messages.
    return null
  }
}

/**
 * The outcome of a message that may not be sent because it could not be built or is too large; null if it may be sent.
 * Fields that the service adds for a list do not count, because they did not exist when the message was accepted.
 */
export function refuseBuilt(message: Buffer | null, { list }: Pick<MailInput, 'list'>): MailOutcome | null {
  if (message === null) return { ...makeUnasked('unbuildable'), phase: 'compose', sizeBytes: null }
  if (message.length - listBytes(list ?? []) <= MESSAGE_BYTES_MAX) return null
  return { ...makeUnasked('too-large'), phase: 'compose', sizeBytes: message.length }
}

function listBytes(list: readonly ListField[]): number {
  return list.reduce((sum, { name, value }) => sum + name.length + value.length + FIELD_FRAME_BYTES, 0)
}
