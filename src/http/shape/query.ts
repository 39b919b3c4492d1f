/**
 * query - the parameters of a URL, checked like a body
 *
 * Spec request.query
 */

import type { Issue } from '../../../schemas/error.ts'
import { ISSUES_MAX } from '../../../schemas/limits.ts'
import type { Schema } from './issues.ts'
import { type Checked, compileBody } from './validate.ts'

/** The parameters as texts, defaults filled in. */
export type Query = Readonly<Record<string, string>>

const INTEGER = /^-?\d{1,15}$/
const NO_PARAMETERS = { type: 'object', properties: {}, additionalProperties: false }

/**
 * Makes the check of a query string. Takes the schema of the parameters, or null. Returns a function of the raw text
 * after the `?`.
 */
export function compileQuery(schema: object | null): (text: string) => Checked<Query> {
  const { properties = {}, additionalProperties } = (schema ?? NO_PARAMETERS) as Schema
  const check = compileBody<Record<string, string | number>>(schema ?? NO_PARAMETERS)
  return function checkQuery(text) {
    const values: Record<string, unknown> = Object.create(null)
    const repeated: Issue[] = []
    for (const [name, value] of new URLSearchParams(text)) {
      if (repeated.length >= ISSUES_MAX) break
      if (additionalProperties === true && !Object.hasOwn(properties, name)) continue
      if (name in values) repeated.push({ path: name, message: 'Given more than once' })
      const isInteger = Object.hasOwn(properties, name) && properties[name]?.type === 'integer' && INTEGER.test(value)
      values[name] = isInteger ? Number(value) : value
    }
    const checked = check(values)
    if (repeated.length > 0) return { ok: false, issues: mergeIssues(repeated, checked) }
    if (!checked.ok) return checked
    return { ok: true, value: formatValues(checked.value) }
  }
}

function mergeIssues(repeated: readonly Issue[], checked: Checked<unknown>): readonly Issue[] {
  const issues = new Map(repeated.map((issue) => [issue.path, issue]))
  for (const issue of checked.ok ? [] : checked.issues) if (!issues.has(issue.path)) issues.set(issue.path, issue)
  return [...issues.values()].slice(0, ISSUES_MAX)
}

function formatValues(values: Readonly<Record<string, string | number>>): Query {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))
}
