/**
 * egress - the stored document of sources, pools and rules of outgoing mail, and the rests of sources
 *
 * Passwords are not in the document: each is a field of its own, sealed, so that a rotation can seal it again.
 *
 * Keys: `egress:conf`, `egress-rests`
 *
 * Spec egress.document
 */

import type { Fact } from '../../cluster/behaviour.ts'
import type { Egress } from '../../schemas/operator/egress.ts'
import { egressKey } from './keys.ts'

/** The topic of changes of the document. */
export const EGRESS_TOPIC = 'egress'

/** The document as it is stored and read; without what is kept beside it. */
export type EgressDocument = Pick<Egress, 'sources' | 'pools' | 'rules' | 'defaultPool'>

/** The document with its version and its sealed passwords, by source. */
export interface StoredEgress {
  readonly version: number
  readonly changedAtMs: number | null
  readonly document: EgressDocument
  readonly passwords: ReadonlyMap<string, string>
}

const PASSWORD = 'password:'
const NO_DOCUMENT: EgressDocument = { sources: [], pools: [], rules: [], defaultPool: null }

/** The field of the sealed password of a source. */
export function passwordField(source: string): string {
  return `${PASSWORD}${source}`
}

/** The source of a field; null if it is no password. */
export function sourceOfField(field: string): string | null {
  return field.startsWith(PASSWORD) ? field.slice(PASSWORD.length) : null
}

/** The read of the document. */
export function egressFact(): Fact & { readonly read: 'hash' } {
  return { read: 'hash', key: egressKey() }
}

/** The stored document, from the fields of its hash. */
export function unpackEgress(fields: ReadonlyMap<string, string>): StoredEgress {
  const text = fields.get('document')
  const passwords = new Map<string, string>()
  for (const [field, value] of fields) {
    const source = sourceOfField(field)
    if (source !== null) passwords.set(source, value)
  }
  return {
    version: Number(fields.get('version') ?? 0),
    changedAtMs: fields.has('changed') ? Number(fields.get('changed')) : null,
    document: text === undefined ? NO_DOCUMENT : (JSON.parse(text) as EgressDocument),
    passwords,
  }
}

/** A source that sends nothing to a site until an instant. */
export interface StoredRest {
  readonly untilMs: number
  /** Blocks without a success between them; each makes the next rest longer. */
  readonly level: number
  readonly why: string
}

/** Packs a rest. */
export function packRest({ untilMs, level, why }: StoredRest): string {
  return JSON.stringify([untilMs, level, why])
}

/** Unpacks a rest; null if it is none. */
export function unpackRest(text: string): StoredRest | null {
  try {
    const [untilMs, level, why] = JSON.parse(text) as [unknown, unknown, unknown]
    const isRest = typeof untilMs === 'number' && typeof level === 'number' && typeof why === 'string'
    return isRest ? { untilMs, level, why } : null
  } catch {
    return null
  }
}

/** The field of a source at a site, in each of the hashes. */
export function placeField(source: string, site: string): string {
  return `${source}|${site}`
}

/** Source and site of a field; without a source it is the site alone. */
export function placeOfField(field: string): { readonly source: string; readonly site: string } {
  const at = field.indexOf('|')
  return { source: field.slice(0, at), site: field.slice(at + 1) }
}
