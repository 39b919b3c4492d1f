/**
 * secret - GET /v1/operator/secret, POST /v1/operator/secret/rotate
 *
 * Spec secret.rotate
 */

import type { RotateSecretBody, RotateSecretReply } from '../../actors/operator/rotate.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import { ROTATION_SHARD } from '../../state/keys.ts'
import type { RingDoor } from '../../store/ring.ts'
import { formatRotation, readRotation } from '../../views/operator/rotation.ts'
import { giveOrder } from '../answer.ts'
import { asOperator, type OperatorDeps, withOwnKey } from '../as-operator.ts'

/** Dependencies of the routes of the secret. */
export interface SecretDeps extends OperatorDeps {
  readonly door: Pick<RingDoor, 'ring' | 'hasNext'>
}

/** GET /v1/operator/secret */
export function makeReadSecret({ read, door }: SecretDeps): HandlerOf<'readSecret'> {
  return asOperator(read, async () => {
    const rotation = await readRotation(read)
    if (rotation === undefined) return refusalReply('unavailable')
    const generations = door.ring.keys.sealing.length
    return { status: 200, json: { generations, rotation: rotation && formatRotation(rotation) } }
  })
}

/** POST /v1/operator/secret/rotate */
export function makeRotateSecret(deps: SecretDeps): HandlerOf<'rotateSecret'> {
  return withOwnKey(deps.read, async (_request, by) => {
    if (!deps.door.hasNext()) return refusalReply('secret_not_set')
    const body: RotateSecretBody = { by }
    const { reply, answer } = await giveOrder<RotateSecretReply>(deps, ROTATION_SHARD, { name: 'rotate-secret', body })
    return answer ?? { status: 202, json: formatRotation(reply.rotation) }
  })
}
