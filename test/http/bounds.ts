/**
 * bounds - every bound of the body or the query of any route: it is in this table, its limits pass, and values beyond
 * them are refused at the field. A bound that is only in the schemas, or only in the table, fails.
 */
import t from 'tap'
import { ROUTES, type Route } from '../../schemas/routes.ts'
import { EVENTS } from '../../schemas/webhook.ts'
import { compileQuery } from '../../src/http/shape/query.ts'
import { compileBody } from '../../src/http/shape/validate.ts'

type Unit = 'characters' | 'items' | 'number' | 'entries'
/** Unit, least, most; null: none. */
type Bound = readonly [Unit, number | null, number | null]

const NAME: Bound = ['characters', 1, 100]
const ADDRESS_NAME: Bound = ['characters', 1, 200]
const OPERATED: Bound = ['number', 1, 1_000_000_000]

/** Fields of a message; in a batch below `messages.0.`. */
const MESSAGE: Readonly<Record<string, Bound>> = {
  'from.name': ADDRESS_NAME,
  to: ['items', 1, 50],
  'to.0.name': ADDRESS_NAME,
  cc: ['items', null, 50],
  'cc.0.name': ADDRESS_NAME,
  bcc: ['items', null, 50],
  'bcc.0.name': ADDRESS_NAME,
  subject: ['characters', 1, 998],
  text: ['characters', 1, null],
  html: ['characters', 1, null],
  headers: ['entries', null, 20],
  'headers.X-A': ['characters', 1, 998],
  attachments: ['items', null, 20],
  'attachments.0.name': ['characters', 1, 255],
  'attachments.0.contentType': ['characters', null, 255],
  'attachments.0.contentId': ['characters', 1, 255],
  tag: ['characters', 1, 100],
  metadata: ['entries', null, 20],
  'metadata.<key>': ['characters', 1, 40],
  'metadata.key': ['characters', null, 500],
}

const BATCH: Readonly<Record<string, Bound>> = {
  messages: ['items', 1, 100],
  ...Object.fromEntries(Object.entries(MESSAGE).map(([field, bound]) => [`messages.0.${field}`, bound])),
}

/** By field, for all routes. A route's own row takes precedence. */
const FIELDS: Readonly<Record<string, Bound>> = {
  ...MESSAGE,
  ...BATCH,
  name: NAME,
  note: ['characters', 1, 1_000],
  limit: ['number', 1, 100],
  perMinuteLimit: OPERATED,
  monthlyCap: OPERATED,
  approvedCap: OPERATED,
  highestCap: OPERATED,
  serverLimit: OPERATED,
  testPerMinuteLimit: OPERATED,
  testMonthlyCap: OPERATED,
  inboundPerMinuteLimit: OPERATED,
  pacePerMinute: OPERATED,
  contentRetentionDays: ['number', 1, 30],
  sentContentDays: ['number', 0, 30],
  logRetentionMonths: ['number', 1, 13],
  recipients: ['items', 1, 1_000],
  events: ['items', 1, 8],
  administrators: ['items', null, 50],
  token: ['characters', 1, 200],
  domain: ['characters', 1, 253],
  mailboxHash: ['characters', null, 255],
  recipientContains: ['characters', 1, 254],
  site: ['characters', 1, 255],
  classification: ['characters', 1, 100],
}

const UNITS: Bound = ['number', 1, 1_000_000_000]
const EGRESS: Readonly<Record<string, Bound>> = Object.fromEntries(
  Object.entries<Bound>({
    sources: ['items', null, 64],
    'sources.0.password': ['characters', 1, 500],
    'sources.0.connections': ['number', 1, 256],
    'sources.0.limits': ['items', null, 50],
    'sources.0.limits.0.connections': ['number', 1, 256],
    'sources.0.limits.0.connectionsPerMinute': ['number', 1, 10_000],
    'sources.0.limits.0.messagesPerConnection': ['number', 1, 100_000],
    'sources.0.limits.0.messagesPerSecond': ['number', 1, 10_000],
    'sources.0.limits.0.messagesPerHour': UNITS,
    'sources.0.limits.0.messagesPerDay': UNITS,
    'sources.0.warmup.schedule': ['items', 1, 90],
    'sources.0.warmup.schedule.0': UNITS,
    pools: ['items', null, 32],
    'pools.0.sources': ['items', 1, 32],
    'pools.0.sources.0.weight': ['number', 0, 1_000],
    rules: ['items', null, 200],
  }).map(([field, bound]) => [`applyEgress ${field}`, bound]),
)

const OF_ROUTE: Readonly<Record<string, Bound>> = {
  'searchRequests status': ['number', 100, 599],
  'searchRequests error': NAME,
  'searchMessages metadata': ['entries', 1, 1],
  'searchEvents metadata': ['entries', 1, 1],
  'searchOutcomes metadata': ['entries', 1, 1],
  'exportMessages metadata': ['entries', 1, 1],
  'exportBounces metadata': ['entries', 1, 1],
  'createWebhook metadata': ['entries', 1, 1],
  'searchMessages waitSeconds': ['number', 0, 30],
  'searchEvents waitSeconds': ['number', 0, 30],
  ...EGRESS,
  'explainEgress recipientIndex': ['number', 0, 49],
  'readReports source': ['characters', null, 45],
  'exportReports source': ['characters', null, 45],
  'searchEvents limit': ['number', 1, 1_000],
  'searchSuppressions limit': ['number', 1, 1_000],
  'operatorSearchSuppressions limit': ['number', 1, 1_000],
  'listDeliveries limit': ['number', 1, 1_000],
  'createBroadcast messages': ['items', 1, 50_000],
  'createBroadcast messages.0.to.name': ADDRESS_NAME,
  'createBroadcast messages.0.substitutions': ['entries', null, 20],
  'createBroadcast messages.0.substitutions.key': ['characters', null, 500],
  'previewBroadcast index': ['number', 0, 49_999],
  'previewBroadcast messages': ['items', 1, 50_000],
  'previewBroadcast messages.0.to.name': ADDRESS_NAME,
  'previewBroadcast messages.0.substitutions': ['entries', null, 20],
  'previewBroadcast messages.0.substitutions.key': ['characters', null, 500],
}

// biome-ignore lint/suspicious/noExplicitAny: schemas are read as data here.
type Schema = any

interface Found {
  readonly route: Route
  readonly field: string
  readonly bound: Bound
  readonly isQuery: boolean
}

const KEYWORDS: readonly [Unit, string, string][] = [
  ['characters', 'minLength', 'maxLength'],
  ['items', 'minItems', 'maxItems'],
  ['number', 'minimum', 'maximum'],
  ['entries', 'minProperties', 'maxProperties'],
]

/** The bounds of a schema, each with the path of its field. */
function boundsOf(schema: Schema, field = ''): [string, Bound][] {
  const below = (name: string) => (field === '' ? name : `${field}.${name}`)
  const own = KEYWORDS.filter(([, least, most]) => least in schema || most in schema).map(
    ([unit, least, most]): [string, Bound] => [field, [unit, schema[least] ?? null, schema[most] ?? null]],
  )
  return [
    ...own,
    ...Object.entries(schema.properties ?? {}).flatMap(([name, one]) => boundsOf(one, below(name))),
    ...[schema.then, schema.else].filter(Boolean).flatMap((one) => boundsOf(one, field)),
    ...(schema.items === undefined ? [] : boundsOf(schema.items, below('0'))),
    ...(schema.propertyNames === undefined ? [] : boundsOf(schema.propertyNames, below('<key>'))),
    ...(typeof schema.additionalProperties === 'object'
      ? boundsOf(schema.additionalProperties, below(field.endsWith('headers') ? 'X-A' : 'key'))
      : []),
  ]
}

const found: readonly Found[] = Object.values<Route>(ROUTES).flatMap((route) => [
  ...boundsOf(route.body ?? {}).map(([field, bound]) => ({ route, field, bound, isQuery: false })),
  ...boundsOf(route.query ?? {}).map(([field, bound]) => ({ route, field, bound, isQuery: true })),
])

const ITEMS: Readonly<Record<string, (number: number) => unknown>> = {
  attachments: (number) => ({ name: `f${number}`, content: 'QQ==' }),
  messages: () => ({ from: 'a@b.co', to: ['c@b.co'], subject: 's', text: 't' }),
  events: (number) => EVENTS[number] ?? 'none',
}

/** A value of `size` for a field. */
function sampleOf(field: string, unit: Unit, size: number): unknown {
  const name = field.slice(field.lastIndexOf('.') + 1)
  const item = ITEMS[name] ?? ((number: number) => `r${number}@example.com`)
  if (unit === 'number') return size
  if (unit === 'items') return Array.from({ length: size }, (_, number) => item(number))
  if (unit === 'entries') return Object.fromEntries(Array.from({ length: size }, (_, n) => [`X-${n}`, 'v']))
  // A media type has a slash in its middle.
  return name === 'contentType' ? `${'t'.repeat(127)}/${'t'.repeat(size - 128)}` : '\u{1F600}'.repeat(size)
}

/** A body with one field. */
function bodyOf(field: string, value: unknown): object {
  const names = field.split('.')
  if (names.at(-1) === '<key>') return bodyOf(names.slice(0, -1).join('.'), { [value as string]: 'v' })
  return names.reduceRight<unknown>((inner, name) => (name === '0' ? [inner] : { [name]: inner }), value) as object
}

/** Whether a value is refused at its field. */
function isRefused({ route, field, isQuery, bound: [unit] }: Found, size: number): boolean {
  const value = sampleOf(field, unit, size)
  const checked = isQuery
    ? compileQuery(route.query)(`${field}=${value}`)
    : compileBody(route.body ?? {})(bodyOf(field, value))
  const at = field.replace('<key>', String(value))
  return !checked.ok && checked.issues.some(({ path }) => path === at)
}

t.test('bounds: those of the schemas are those of the contract [route.table]', async (t) => {
  const used = new Set<string>()
  for (const { route, field, bound } of found) {
    const own = `${route.name} ${field}`
    t.same(bound, OF_ROUTE[own] ?? FIELDS[field], own)
    used.add(own).add(field)
  }
  t.same(
    [...Object.keys(FIELDS), ...Object.keys(OF_ROUTE)].filter((row) => !used.has(row)),
    [],
  )
})

t.test('bounds: the limits pass, one below and one above do not [route.table]', async (t) => {
  // Copies count together with `to`: test/sending/email-form.ts.
  for (const one of found.filter(({ field }) => !/\bb?cc$/.test(field))) {
    const [unit, least, most] = one.bound
    const isWithin = (size: number) => !isRefused(one, size)
    const what = `${one.route.name} ${one.field} ${unit}`
    if (least !== null && isRefused(one, least)) t.fail(`${what} ${least} is refused`)
    if (most !== null && isRefused(one, most)) t.fail(`${what} ${most} is refused`)
    if (least !== null && isWithin(least - 1)) t.fail(`${what} ${least - 1} passes`)
    if (most !== null && isWithin(most + 1)) t.fail(`${what} ${most + 1} passes`)
  }
  t.ok(found.length > 100)
})
