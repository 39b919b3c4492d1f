/**
 * fields - the fields of a JSON object that a client sent
 *
 * A door maps a body before our own check, so a text, a list or an object of a million fields must cost it nothing.
 */

import type { Issue } from '../../../schemas/error.ts'
import { ISSUES_MAX } from '../../../schemas/limits.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads the known fields of a value. Returns those that are given and not null, and an issue for each other one, with
 * the message of `notOffered` if it has one; at most as many issues as an answer names.
 */
export function readFields(
  value: unknown,
  known: ReadonlySet<string>,
  notOffered: ReadonlyMap<string, string> = new Map(),
): { readonly fields: Fields; readonly issues: Issue[] } {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fields: {}, issues: [{ path: '', message: 'Must be an object' }] }
  const issues: Issue[] = []
  const fields: Record<string, unknown> = {}
  for (const path in value) {
    if (issues.length === ISSUES_MAX) break
    const field = (value as Fields)[path]
    // The names in `known` are ours, and none is `__proto__`.
    if (!known.has(path)) issues.push({ path, message: notOffered.get(path) ?? 'Unknown field' })
    else if (field !== null) fields[path] = field
  }
  return { fields, issues }
}

/** Sets a field that a client names. Defining it would be slow; but `__proto__` cannot be set. */
export function setField(fields: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(fields, name, { value, enumerable: true })
  else fields[name] = value
}
