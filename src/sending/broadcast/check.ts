/**
 * check - the rules of a broadcast beyond its schema: placeholders and their values, duplicate recipients
 *
 * Guarantees: at most 100 issues, in the order of the body; nothing of a broadcast that has one is stored.
 *
 * Spec broadcast.placeholders, broadcast.messages, broadcast.substitutions
 */

import type { BroadcastBody, BroadcastMessage } from '../../../schemas/broadcast.ts'
import type { Issue } from '../../../schemas/error.ts'
import { HEADER_VALUE_CHARS_MAX, ISSUES_MAX, METADATA_MAX, SUBJECT_CHARS_MAX } from '../../../schemas/limits.ts'
import { withHtmlFooter, withTextFooter } from '../../mail/compose/footer.ts'
import { fillText, parseTemplate, type Template, UNSUBSCRIBE_NAME } from '../../mail/compose/template.ts'
import { readAddress, withoutControl } from '../email-form.ts'

/** The three parsed texts of a broadcast, with the footer if needed. */
export interface BroadcastTemplates {
  readonly subject: Template
  readonly text: Template | null
  readonly html: Template | null
}

type TextField = 'subject' | 'text' | 'html'

const NO_PLACEHOLDER = 'Must hold {{ only where a placeholder begins: {{name}}, of letters, digits and underscores'
const OWN_LINK = `Must not hold {{${UNSUBSCRIBE_NAME}}}`
const UNSUBSCRIBE_URL = /<(?:https:\/\/|mailto:)[^<>\s]+>/i
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/
const OWN_NAME = `${UNSUBSCRIBE_NAME} is filled by the service`

/** Parses the checked texts of a broadcast into their stored form. Throws TypeError for texts with faults. */
export function readTemplates({ subject, text, html }: Pick<BroadcastBody, TextField>): BroadcastTemplates {
  const read = (one: string | null | undefined) => (one == null ? null : parseTemplate(one))
  const [ofSubject, ofText, ofHtml] = [parseTemplate(withoutControl(subject)), read(text), read(html)]
  if (ofSubject === null || (ofText === null && text != null) || (ofHtml === null && html != null))
    throw new TypeError('Texts were not validated')
  return {
    subject: ofSubject,
    text: ofText === null ? null : withTextFooter(ofText),
    html: ofHtml === null ? null : withHtmlFooter(ofHtml),
  }
}

/** The issues of a broadcast that its schema accepts; empty if none. */
export function checkBroadcast(body: BroadcastBody): Issue[] {
  const issues = faultyTexts(body)
  if (issues.length > 0) return issues
  const { subject, text, html } = readTemplates(body)
  const headers = headerTemplates(body)
  const wanted = new Set([subject, text, html, ...headers.values()].flatMap((one) => one?.names ?? []))
  wanted.delete(UNSUBSCRIBE_NAME)
  const seen = new Set<string>()
  const metadataNames = Object.keys(body.metadata)
  for (const [index, message] of body.messages.entries()) {
    if (issues.length >= ISSUES_MAX) break
    const path = `messages.${index}`
    const { address } = readAddress(message.to)
    const person = address.toLowerCase()
    if (seen.has(person)) issues.push({ path: `${path}.to`, message: 'Duplicate of an earlier address' })
    seen.add(person)
    const values = faultyValues(message, { path, wanted })
    issues.push(...values)
    if (values.length === 0 && !isSubject(fillText(subject, message.substitutions)))
      issues.push({ path: `${path}.substitutions`, message: `Subject must have 1 to ${SUBJECT_CHARS_MAX} characters` })
    if (values.length === 0) issues.push(...faultyHeaders(headers, message, path))
    if (new Set([...metadataNames, ...Object.keys(message.metadata)]).size > METADATA_MAX)
      issues.push({
        path: `${path}.metadata`,
        message: `Must have at most ${METADATA_MAX} entries with the broadcast's`,
      })
  }
  return issues.slice(0, ISSUES_MAX)
}

function faultyTexts(body: BroadcastBody): Issue[] {
  const issues: Issue[] = []
  for (const field of ['subject', 'text', 'html'] as const) {
    const text = body[field]
    const template = text === undefined ? undefined : parseTemplate(text)
    if (template === null) issues.push({ path: field, message: NO_PLACEHOLDER })
    else if (field === 'subject' && template?.names.includes(UNSUBSCRIBE_NAME))
      issues.push({ path: field, message: OWN_LINK })
  }
  return [...issues, ...faultyHeaderTexts(body)]
}

// Spec broadcast.unsubscribe
function faultyHeaderTexts({ unsubscribe, headers }: BroadcastBody): Issue[] {
  if (unsubscribe !== 'sender') return []
  const issues: Issue[] = []
  if (!Object.keys(headers).some(isUnsubscribeField))
    issues.push({ path: 'unsubscribe', message: 'Requires a List-Unsubscribe header' })
  for (const [name, value] of Object.entries(headers)) {
    const template = parseTemplate(value)
    if (template === null) issues.push({ path: `headers.${name}`, message: NO_PLACEHOLDER })
    else if (template.names.includes(UNSUBSCRIBE_NAME)) issues.push({ path: `headers.${name}`, message: OWN_LINK })
  }
  return issues
}

/** Headers with placeholders, by name: those of a broadcast with its own List-Unsubscribe. */
function headerTemplates({ unsubscribe, headers }: BroadcastBody): ReadonlyMap<string, Template> {
  const templates = new Map<string, Template>()
  if (unsubscribe !== 'sender') return templates
  for (const [name, value] of Object.entries(headers)) {
    const template = parseTemplate(value)
    if (template !== null) templates.set(name, template)
  }
  return templates
}

/** The problems with the headers of one message, once filled. */
function faultyHeaders(
  headers: ReadonlyMap<string, Template>,
  { substitutions }: BroadcastMessage,
  path: string,
): Issue[] {
  const issues: Issue[] = []
  for (const [name, template] of headers) {
    const value = fillText(template, substitutions)
    const add = (message: string) => issues.push({ path: `${path}.substitutions`, message: `${name} ${message}` })
    if (value.trim() === '' || value.length > HEADER_VALUE_CHARS_MAX || CONTROL.test(value))
      add(`must have 1 to ${HEADER_VALUE_CHARS_MAX} characters without control characters`)
    else if (isUnsubscribeField(name) && !UNSUBSCRIBE_URL.test(value)) add('must hold an https or mailto URL in <>')
  }
  return issues
}

function isUnsubscribeField(name: string): boolean {
  return name.toLowerCase() === 'list-unsubscribe'
}

function faultyValues(
  { substitutions }: BroadcastMessage,
  { path, wanted }: { readonly path: string; readonly wanted: ReadonlySet<string> },
): Issue[] {
  const issues: Issue[] = []
  const add = (name: string, message: string) => issues.push({ path: `${path}.substitutions.${name}`, message })
  for (const name of Object.keys(substitutions)) {
    if (name === UNSUBSCRIBE_NAME) add(name, OWN_NAME)
    else if (!wanted.has(name)) add(name, 'Is not used by any placeholder')
  }
  for (const name of wanted) {
    if (issues.length >= ISSUES_MAX) break
    if (!Object.hasOwn(substitutions, name)) add(name, 'Required: a placeholder has this name')
  }
  return issues
}

function isSubject(subject: string): boolean {
  if (subject === '' || subject.length > SUBJECT_CHARS_MAX * 2) return false
  return subject.length <= SUBJECT_CHARS_MAX || [...subject].length <= SUBJECT_CHARS_MAX
}
