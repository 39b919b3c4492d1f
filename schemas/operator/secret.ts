/**
 * secret - the change of SECRET_KEY, and how far it is
 *
 * Spec secret.rotate
 */

import type { FromSchema } from 'json-schema-to-ts'
import { INSTANT, INSTANT_OR_NULL, strictObject, UUID } from '../shape.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

export const ROTATION_PHASES = [
  'preparing',
  'switching',
  'settling',
  'walking',
  'retiring',
  'rewriting',
  'done',
] as const

/** A rotation as it is read. */
export const ROTATION = strictObject({
  rotationId: UUID,
  phase: {
    enum: ROTATION_PHASES,
    description:
      '`preparing`: every process needs the new secret; `switching`, `settling`: every process takes the new key; `walking`: values are sealed again; `retiring`: the former key is removed; `rewriting`: the file of the store is written again',
    examples: ['walking'],
  },
  startedAt: INSTANT,
  doneAt: INSTANT_OR_NULL,
  progress: { type: 'number', minimum: 0, maximum: 1, description: 'Share of the keys of the store that were visited' },
  resealed: { ...COUNT, description: 'Values that were sealed again, and segments of the log that were ordered to be' },
  unreadable: { ...COUNT, description: 'Values that no key opens: they were damaged before' },
  waitsFor: { type: ['string', 'null'], description: 'What the rotation waits for; null: nothing' },
})

/** Answer of GET /v1/operator/secret. */
export const SECRET = strictObject({
  generations: { ...COUNT, description: 'Generations of keys: 1, or 2 during a rotation' },
  rotation: { anyOf: [ROTATION, { type: 'null' }], description: 'The latest rotation; null: there was none' },
})

export type Rotation = FromSchema<typeof ROTATION>
export type Secret = FromSchema<typeof SECRET>
