/**
 * shape - small JSON Schemas that several resources share
 *
 * Spec id.uuid, time.instant
 */

export const UUID = { type: 'string', format: 'uuid' } as const

export const INSTANT = { type: 'string', format: 'date-time' } as const

export const INSTANT_OR_NULL = { type: ['string', 'null'], format: 'date-time' } as const

export const UUID_OR_NULL = { type: ['string', 'null'], format: 'uuid' } as const

export const TEXT_OR_NULL = { type: ['string', 'null'] } as const

export const INTEGER_OR_NULL = { type: ['integer', 'null'] } as const

export const TEXT_MAP = { type: 'object', additionalProperties: { type: 'string' } } as const

/** Text without control characters (C0, DEL and C1). */
export const PRINTABLE = {
  type: 'string',
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
  description: 'text without control characters',
} as const

/** An object with exactly these properties, all required. */
export function strictObject<const Properties extends object>(properties: Properties) {
  const required = Object.keys(properties) as unknown as readonly (keyof Properties & string)[]
  return { type: 'object', properties, required, additionalProperties: false } as const
}
