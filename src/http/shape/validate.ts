/**
 * validate - compiles a schema to a function that returns the value with defaults, or the issues
 *
 * There are two passes: a compiled validator that stops at the first fault (collecting all faults would be cheap for
 * an attacker and expensive here), and the bounded walk of issues.ts only after a failure. Sizes of lists and maps are
 * checked before what is in them.
 *
 * Spec error.issues, text.length, text.forbidden
 */

import { Ajv, type ValidateFunction } from 'ajv'

import type { Issue } from '../../../schemas/error.ts'
import { FORMATS } from './formats.ts'
import { countRecipients, findIssues, type Schema } from './issues.ts'
import { holdsForbidden, isLonger, isShorter } from './text.ts'

/** The value with its defaults, or its issues. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] }

/**
 * Checks one value, and fills its defaults in place. If `mayHoldEscapes` is false, strings are not checked, because a
 * JSON text without `\u` cannot contain U+0000 or a surrogate.
 */
export type Check<T> = (value: unknown, mayHoldEscapes?: boolean) => Checked<T>

const AJV = makeAjv()

/**
 * Makes the check of one schema. It is compiled at its first value, because a start would wait for all of them and
 * needs few. Takes a schema of ours; the first check throws if the schema itself is wrong. Spec error.issues
 */
export function compileBody<T = unknown>(schema: object): Check<T> {
  let validate: ValidateFunction | null = null
  return function check(value, mayHoldEscapes = true) {
    validate ??= AJV.compile(schema)
    if (validate(value) && !(mayHoldEscapes && holdsForbidden(value))) return { ok: true, value: value as T }
    const issues = findIssues(schema as Schema, value)
    return { ok: false, issues: issues.length > 0 ? issues : [{ path: '', message: 'Must match the schema' }] }
  }
}

function makeAjv(): Ajv {
  const ajv = new Ajv({
    useDefaults: true,
    strictRequired: false,
    allowUnionTypes: true,
    messages: false,
    // V8 makes the code fast anyway, and Ajv's own pass over it takes as long as the rest of a compilation.
    code: { optimize: false },
  })
  for (const [name, format] of Object.entries(FORMATS)) ajv.addFormat(name, { validate: format.test })
  // Ajv's own length keywords count every code point of a 10 MB text to learn that it is not empty.
  ajv.removeKeyword('minLength').removeKeyword('maxLength')
  ajv.addKeyword({
    keyword: 'minLength',
    type: 'string',
    schemaType: 'number',
    errors: false,
    compile: (min: number) => (text: string) => !isShorter(text, min),
  })
  ajv.addKeyword({
    keyword: 'maxLength',
    type: 'string',
    schemaType: 'number',
    errors: false,
    compile: (max: number) => (text: string) => !isLonger(text, max),
  })
  ajv.addKeyword({
    keyword: 'recipientsMax',
    type: 'object',
    schemaType: 'number',
    errors: false,
    compile: (max: number) => (fields: Record<string, unknown>) => countRecipients(fields) <= max,
  })
  return ajv
}
