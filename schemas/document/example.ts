/**
 * example - a value that a schema allows, as a reader of the documents would write it
 *
 * Derived from the schema itself, so that every route has one and none becomes outdated. The name of a field selects
 * the value, its schema the allowed ones.
 *
 * Spec openapi.document
 */

type Value = string | number | boolean | null | readonly Value[] | { readonly [field: string]: Value }

/** Keywords that an example is made of. */
interface Schema {
  readonly const?: Value
  readonly examples?: readonly Value[]
  readonly enum?: readonly Value[]
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly minimum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly then?: Schema
  readonly else?: Schema
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly required?: readonly string[]
}

const INSTANT = '2026-11-20T12:00:00.000Z'
const ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'

/** Example values of fields, by name. One that its schema does not allow is skipped. */
const FIELDS: Readonly<Record<string, Value>> = {
  from: { email: 'hello@simulator.test', name: 'Acme' },
  email: 'ada@simulator.test',
  address: 'ada@simulator.test',
  sender: 'ada@simulator.test',
  envelopeRecipient: '01a1f8d8-8300-7000-8000-0e7faee555a7+order-7@inbound.acme.com',
  mailboxHash: 'order-7',
  parseIssue: null,
  dmarcPolicy: null,
  contentOmitted: null,
  inReplyTo: null,
  references: [],
  contentId: null,
  recipient: 'ada@simulator.test',
  recipients: ['ada@simulator.test'],
  administrators: ['ops@acme.com'],
  to: ['ada@simulator.test'],
  cc: [],
  bcc: [],
  subject: 'Your receipt',
  text: 'Thank you, Ada.',
  html: '<p>Thank you, Ada.</p>',
  headers: { 'X-Order': '1042' },
  attachments: [],
  tag: 'receipt',
  metadata: { order: '1042' },
  domain: 'acme.com',
  url: 'https://acme.com/hooks',
  code: 250,
  response: '250 2.0.0 OK',
  classification: null,
  lastResponse: 'ok',
  messageIdHeader: '<01a1f8d8-8300-7000-8000-0e7faee555a7@acme.com>',
  token: 'sk_test_00Wk3nQz_4Zb1mXc7Rk9TqLd2VhYp5JsNfGa8UwEo_1x7Yd2',
  prefix: 'sk_test_00Wk3nQz',
  secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
  inboundAddress: null,
  contentRetentionDays: null,
  sentContentDays: 7,
  logRetentionMonths: 6,
  broadcastId: null,
  inboundMessageId: null,
  nextAttemptAt: null,
  archivedAt: null,
  pausedAt: null,
  revokedAt: null,
  failingSince: null,
  complainedAt: null,
  unsubscribedAt: null,
  completedAt: null,
  pseudonym: null,
  messages: null,
  receivedMessages: null,
  highestCap: null,
  perMinuteLimit: 300,
  monthlyCap: 10_000,
  approvedCap: 10_000,
  serverLimit: 25,
  limit: 50,
  used: 12,
  requested: 1,
  sizeBytes: 1_834,
  attempts: 1,
  next: null,
  after: ID,
  note: 'asked for by phone',
  issues: [{ path: 'to.0', message: 'Must be an e-mail address' }],
}

const BY_FORMAT: Readonly<Record<string, string>> = {
  uuid: ID,
  'date-time': INSTANT,
  address: 'ada@simulator.test',
  mailbox: 'ada@simulator.test',
  'sending-domain': 'acme.com',
  'webhook-url': 'https://acme.com/hooks',
  'header-name': 'X-Order',
  base64: 'SGVsbG8=',
}

/** Fields of a body that only some requests have, because an example with all of them would be misleading. */
const LEFT_OUT: readonly string[] = ['streamId', 'after', 'replyTo', 'sendAt']

/**
 * Makes an example.
 * @param isBody true leaves out the optional fields that few requests have
 */
export function makeExample(schema: object, { isBody = false }: { isBody?: boolean } = {}): Value {
  const make = (asked: Schema, name: string): Value => {
    if (asked.examples?.[0] !== undefined) return asked.examples[0]
    const suggested = FIELDS[name]
    if (suggested !== undefined && fits(asked, suggested)) return suggested
    if (asked.const !== undefined) return asked.const
    if (asked.enum !== undefined) return asked.enum[0] as Value
    const alternative = asked.then ?? asked.oneOf?.[0] ?? asked.anyOf?.[0]
    if (alternative !== undefined && asked.type === undefined) return make(alternative, name)
    if (asked.format !== undefined && asked.format in BY_FORMAT) return BY_FORMAT[asked.format] as string
    return ofType(asked, name)
  }
  const ofType = (asked: Schema, name: string): Value => {
    const [type] = [asked.type ?? 'object'].flat()
    if (type === 'object') return fieldsOf(asked)
    if (type === 'array') return asked.items === undefined ? [] : [make(asked.items, name)]
    if (type === 'integer' || type === 'number') return asked.minimum ?? 0
    if (type === 'boolean') return false
    return type === 'null' ? null : textOf(name)
  }
  const fieldsOf = ({ properties = {}, required = [] }: Schema): Value =>
    Object.fromEntries(
      Object.entries(properties)
        .filter(([name]) => !isBody || required.includes(name) || !LEFT_OUT.includes(name))
        .map(([name, field]) => [name, make(field, name)]),
    )
  return make(schema as Schema, '')
}

/** Whether a schema accepts a value, judged by its constants and types only. */
function fits({ const: only, enum: some, type, then, else: other, items, required }: Schema, value: Value): boolean {
  if (only !== undefined) return only === value
  if (some !== undefined) return some.includes(value)
  if (then !== undefined) return fits(then, value) || (other !== undefined && fits(other, value))
  const types = [type ?? []].flat()
  if (typeof value === 'number') return types.includes('integer') || types.includes('number')
  if (value === null) return types.includes('null')
  if (typeof value === 'object' && !Array.isArray(value))
    return types.includes('object') && (required ?? []).every((name) => name in value)
  if (!Array.isArray(value)) return types.includes(typeof value)
  return types.includes('array') && value.every((item) => items === undefined || fits(items, item))
}

/** Example text derived from the name of a field: `lastError` -> `last error`. */
function textOf(name: string): string {
  return name === '' || name === 'name' ? 'Receipts' : name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}
