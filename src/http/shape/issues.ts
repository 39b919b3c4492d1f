/**
 * issues - the second look at a body that failed: every invalid field, in the order of the body, at most 100
 *
 * The fast validator only rejects. This one walks the same schema and reports the places. It supports only the keywords
 * of our schemas; a list, map or set of recipients that is too large is reported once and not searched.
 *
 * Spec error.issues
 */

import type { Issue } from '../../../schemas/error.ts'
import { ISSUES_MAX } from '../../../schemas/limits.ts'
import { FORMATS } from './formats.ts'
import { isForbidden, isLonger, isShorter, toWellFormed } from './text.ts'

/** The keywords that our schemas use. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly description?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minProperties?: number
  readonly uniqueItems?: boolean
  readonly maxProperties?: number
  readonly recipientsMax?: number
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly propertyNames?: Schema
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly if?: Schema
  readonly then?: Schema
  readonly else?: Schema
}

type Fields = Readonly<Record<string, unknown>>

/** Characters of one name in a path; longer names, which no schema knows, are cut. */
const NAME_IN_PATH_MAX = 1000

const NAMED = 'Must be an e-mail address alone; one with a name is {"email": "ada@example.com", "name": "Ada"}'

const RECIPIENT_FIELDS: readonly string[] = ['to', 'cc', 'bcc']

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'an integer',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
  null: 'null',
}

const PATTERNS = new Map<string, RegExp>()

/** Finds the faults of a value: at most 100 issues in the order of the body, missing fields last. */
export function findIssues(schema: Schema, value: unknown): Issue[] {
  const issues: Issue[] = []
  walk(schema, value, '', issues)
  return issues
}

function walk(schema: Schema, value: unknown, path: string, issues: Issue[]): void {
  if (issues.length >= ISSUES_MAX) return
  const chosen = chooseBranch(schema, value)
  const message = typeof chosen === 'string' ? chosen : describeProblem(chosen, value)
  if (typeof chosen === 'string' || message !== null) {
    issues.push({ path, message: message ?? '' })
  } else if (Array.isArray(value)) {
    walkItems(chosen, value, path, issues)
  } else if (typeof value === 'object' && value !== null) {
    walkFields(chosen, value as Fields, path, issues)
  }
}

/** An address is a string or an object; chooses the matching branch, or returns the message if neither matches. */
function chooseBranch(schema: Schema, value: unknown): Schema | string {
  if (schema.if === undefined || schema.then === undefined || schema.else === undefined) return schema
  if (schema.if.properties !== undefined) return hasConstants(schema.if.properties, value) ? schema.then : schema.else
  if (isOfType(value, 'string')) return isNamed(value as string) ? NAMED : schema.then
  return isOfType(value, 'object') ? schema.else : 'Must be an e-mail address, or an object with email and name'
}

/** Whether an object has these fields with these constants. */
function hasConstants(fields: Readonly<Record<string, Schema>>, value: unknown): boolean {
  if (!isOfType(value, 'object')) return false
  return Object.entries(fields).every(([name, field]) => (value as Fields)[name] === field.const)
}

/** Whether a text is an address with a name before it, as mail shows it: `Ada <ada@example.com>`. */
function isNamed(text: string): boolean {
  return text.endsWith('>') && text.includes('<')
}

function walkItems(schema: Schema, items: readonly unknown[], path: string, issues: Issue[]): void {
  if (schema.items === undefined) return
  for (let index = 0; index < items.length && issues.length < ISSUES_MAX; index++) {
    walk(schema.items, items[index], joinPath(path, String(index)), issues)
  }
}

function walkFields(schema: Schema, fields: Fields, path: string, issues: Issue[]): void {
  const tooMany = schema.recipientsMax !== undefined && countRecipients(fields) > schema.recipientsMax
  for (const name in fields) {
    if (issues.length >= ISSUES_MAX) return
    if (tooMany && RECIPIENT_FIELDS.includes(name)) {
      if (name === 'to') issues.push({ path: joinPath(path, name), message: recipientsMessage(schema) })
    } else {
      walkField(schema, name, fields[name], joinPath(path, name), issues)
    }
  }
  addMissing(schema, fields, path, issues)
}

function walkField(schema: Schema, name: string, value: unknown, path: string, issues: Issue[]): void {
  const known = schema.properties
  if (known !== undefined && Object.hasOwn(known, name)) {
    walk(known[name] as Schema, value, path, issues)
  } else if (schema.additionalProperties === false) {
    issues.push({ path, message: 'Unknown field' })
  } else {
    const message = schema.propertyNames === undefined ? null : describeProblem(schema.propertyNames, name)
    if (message !== null) issues.push({ path, message: `Name not allowed: ${message.toLowerCase()}` })
    else if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, value, path, issues)
  }
}

function addMissing(schema: Schema, fields: Fields, path: string, issues: Issue[]): void {
  for (const name of schema.required ?? []) {
    if (issues.length >= ISSUES_MAX) return
    if (!Object.hasOwn(fields, name)) issues.push({ path: joinPath(path, name), message: 'Required' })
  }
  const names = (schema.anyOf ?? []).map((branch) => branch.required?.[0] ?? '')
  if (names.length === 0 || names.some((name) => Object.hasOwn(fields, name)) || issues.length >= ISSUES_MAX) return
  issues.push({ path: joinPath(path, names[0] ?? ''), message: `Required: at least one of ${names.join(' and ')}` })
}

/** The problem of the value itself, apart from its content, or null. */
function describeProblem(schema: Schema, value: unknown): string | null {
  const types = typeof schema.type === 'string' ? [schema.type] : schema.type
  if (types !== undefined && !types.some((type) => isOfType(value, type))) {
    return `Must be ${types.map((type) => TYPE_NAMES[type] ?? type).join(' or ')}`
  }
  if ('const' in schema && value !== schema.const) return `Must be ${String(schema.const)}`
  if (schema.enum !== undefined && !schema.enum.includes(value)) return `Must be one of ${schema.enum.join(', ')}`
  if (typeof value === 'string') return problemOfText(schema, value)
  if (typeof value === 'number') return problemOfNumber(schema, value)
  if (Array.isArray(value)) return problemOfList(schema, value)
  return typeof value === 'object' && value !== null ? problemOfMap(schema, Object.keys(value).length) : null
}

function problemOfText(schema: Schema, text: string): string | null {
  if (schema.minLength !== undefined && isShorter(text, schema.minLength)) return 'Must not be empty'
  if (schema.maxLength !== undefined && isLonger(text, schema.maxLength)) {
    return `Must be at most ${schema.maxLength} characters`
  }
  const format = schema.format === undefined ? undefined : FORMATS[schema.format]
  if (format !== undefined) return format.test(text) ? null : format.message
  if (schema.pattern !== undefined && !compilePattern(schema.pattern).test(text)) {
    return `Must be ${schema.description ?? 'of another form'}`
  }
  return isForbidden(text) ? 'Must not contain U+0000 or a lone surrogate' : null
}

function problemOfNumber(schema: Schema, number: number): string | null {
  if (schema.minimum !== undefined && number < schema.minimum) return `Must be at least ${schema.minimum}`
  if (schema.maximum !== undefined && number > schema.maximum) return `Must be at most ${schema.maximum}`
  return null
}

function problemOfMap(schema: Schema, size: number): string | null {
  if (schema.minProperties !== undefined && size < schema.minProperties) return 'Must not be empty'
  if (schema.maxProperties === undefined || size <= schema.maxProperties) return null
  return `Must have at most ${schema.maxProperties} ${schema.maxProperties === 1 ? 'entry' : 'entries'}`
}

function problemOfList(schema: Schema, items: readonly unknown[]): string | null {
  const { length } = items
  if (schema.minItems !== undefined && length < schema.minItems) return `Must have at least ${schema.minItems} entry`
  if (schema.maxItems !== undefined && length > schema.maxItems) return `Must have at most ${schema.maxItems} entries`
  if (schema.uniqueItems === true && new Set(items).size < length) return 'Must not contain duplicates'
  return null
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

/** Entries of to, cc and bcc together. Spec send.recipients.max */
export function countRecipients(fields: Fields): number {
  let count = 0
  for (const name of RECIPIENT_FIELDS) {
    const list = fields[name]
    if (Array.isArray(list)) count += list.length
  }
  return count
}

function recipientsMessage(schema: Schema): string {
  return `Must be at most ${schema.recipientsMax} recipients in to, cc and bcc together`
}

/** A name may have forbidden characters, and the cut may split a pair, so lone surrogates are replaced. */
function joinPath(path: string, name: string): string {
  const shown = toWellFormed(name.length > NAME_IN_PATH_MAX ? `${name.slice(0, NAME_IN_PATH_MAX)}…` : name)
  return path === '' ? shown : `${path}.${shown}`
}

function compilePattern(source: string): RegExp {
  const known = PATTERNS.get(source)
  if (known !== undefined) return known
  const pattern = new RegExp(source, 'u')
  PATTERNS.set(source, pattern)
  return pattern
}
