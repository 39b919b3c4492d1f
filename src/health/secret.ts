/**
 * secret - whether a rotation of the secret waits for something, is left to be begun, or has left a setting behind
 *
 * Spec operator.health, secret.rotate
 */

import type { Finding } from '../../schemas/operator/health.ts'
import type { Config } from '../process/config.ts'
import { MINUTE_MS } from '../state/calendar.ts'
import type { RingDoor } from '../store/ring.ts'
import type { Reader } from '../views/key.ts'
import { formatRotation, readRotation } from '../views/operator/rotation.ts'
import { warning, well } from './finding.ts'

/** A rotation waits this long for processes that are being restarted. */
const WAITING_MS = 10 * MINUTE_MS
const NAME = 'secret'

export interface SecretExamineDeps {
  readonly read: Reader
  readonly config: Pick<Config, 'secretKey' | 'secretKeyPrevious'>
  readonly door: Pick<RingDoor, 'hasNext'>
  /** The store's clock, milliseconds. */
  readonly nowMs: () => number
}

/** Checks it. Rejects if the store does not answer. */
export async function examineSecret({ read, config, door, nowMs }: SecretExamineDeps): Promise<Finding> {
  const rotation = await readRotation(read)
  if (rotation === undefined) throw new Error('the store does not answer')
  if (rotation !== null && rotation.phase !== 'done') {
    const { progress, waitsFor, startedAt } = formatRotation(rotation)
    if (waitsFor !== null && nowMs() - rotation.startedAtMs > WAITING_MS)
      return warning(
        NAME,
        `The rotation of the secret that began at ${startedAt} waits: ${waitsFor}`,
        'Restart the named process with the new secret, or end it; sendwright secret show prints the progress',
      )
    return well(NAME, `The secret is being rotated: ${Math.round(progress * 100)} % (${rotation.phase})`)
  }
  const { secretKey, secretKeyPrevious } = config
  if (secretKey !== null && door.hasNext())
    return warning(
      NAME,
      'SECRET_KEY is a new secret that the store does not use yet: it still uses SECRET_KEY_PREVIOUS',
      'Run sendwright secret rotate once each process has both settings',
    )
  if (secretKeyPrevious !== null)
    return warning(
      NAME,
      'SECRET_KEY_PREVIOUS is set, and nothing needs it any more',
      'Remove SECRET_KEY_PREVIOUS from the settings of every process, and restart them',
    )
  const last = rotation === null ? 'never rotated' : `rotated at ${formatRotation(rotation).doneAt}`
  return well(NAME, `The secret is in use, ${last}`)
}
