/**
 * server - GET /v1/server
 *
 * Spec server.read
 */

import type { KeyOwner } from '../http/key.ts'
import type { Handler } from '../http/request.ts'
import { refuse } from '../http/respond.ts'
import type { Reader } from '../views/key.ts'
import { readServer } from '../views/server.ts'

/** GET /v1/server */
export function makeReadServer({ read, nowMs }: { read: Reader; nowMs: () => number }): Handler {
  return async ({ key }) => {
    const seen = await readServer(read, key as KeyOwner, nowMs())
    return typeof seen === 'string' ? refuse(seen) : { status: 200, json: seen }
  }
}
