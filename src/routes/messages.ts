/**
 * messages - GET /v1/messages/{id}
 *
 * Spec message.read
 */

import type { KeyOwner } from '../edge/key.ts'
import type { Handler } from '../edge/request.ts'
import { refuse } from '../edge/respond.ts'
import { type MessageDeps, readMessage } from '../views/message.ts'

/** GET /v1/messages/{id} */
export function makeReadMessage(deps: MessageDeps): Handler {
  return async ({ key, params }) => {
    const seen = await readMessage(deps, key as KeyOwner, params.id ?? '')
    return typeof seen === 'string' ? refuse(seen) : { status: 200, json: seen }
  }
}
