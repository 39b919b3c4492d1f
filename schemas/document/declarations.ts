/**
 * declarations - the types of the TypeScript client, printed from the OpenAPI document of the public routes
 *
 * One file for each group of types, so that each stays short. A reference in the document becomes the type of that
 * name. Lists in request types are read-only, so that constant lists fit. Every enumeration is a union of its values.
 *
 * Spec client.types
 */

// biome-ignore lint/suspicious/noExplicitAny: a document is what OpenAPI says it is.
type Node = any

/** The place of a type's schema, which is a component, or a part of an operation. */
type Place = { readonly component: string } | { readonly of: 'body' | 'query' | 'answer'; readonly route: string }

const COLUMNS = 120
/** The text of a line before its type. */
const NAME_COLUMNS = 30
/** Components that callers write. */
const WRITTEN: readonly string[] = ['Address', 'Attachment', 'Email']

const component = (name: string): Place => ({ component: name })
const body = (route: string): Place => ({ of: 'body', route })
const query = (route: string): Place => ({ of: 'query', route })
const answer = (route: string): Place => ({ of: 'answer', route })

const EVENT_TYPES: Readonly<Record<string, string>> = {
  delivered: 'DeliveredEvent',
  bounced: 'BouncedEvent',
  deferred: 'DeferredEvent',
  spam_complaint: 'SpamComplaintEvent',
  unsubscribed: 'UnsubscribedEvent',
  cap_warning: 'CapWarningEvent',
  cap_reached: 'CapReachedEvent',
  inbound: 'InboundEvent',
}

/** Events with their own type in the file of that name. */
const OWN_EVENTS = Object.keys(EVENT_TYPES).filter((event) => event !== 'inbound')

/** The files of types by name, with each type and the place of its schema. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, Place>>>> = {
  sending: {
    Address: component('Address'),
    Attachment: component('Attachment'),
    Email: component('Email'),
    EmailAnswer: component('EmailAnswer'),
    BroadcastBody: body('createBroadcast'),
    BroadcastPreviewBody: body('previewBroadcast'),
    BroadcastPreview: answer('previewBroadcast'),
    Broadcast: component('Broadcast'),
    BroadcastQuery: query('listBroadcasts'),
    BroadcastList: answer('listBroadcasts'),
  },
  messages: {
    RecipientEntry: component('RecipientEntry'),
    MessageEvent: component('MessageEvent'),
    MessageSummary: component('MessageSummary'),
    Message: component('Message'),
    MessageSearch: body('searchMessages'),
    MessageList: answer('searchMessages'),
    Checks: answer('checkMessage'),
  },
  received: {
    ReceivedSummary: component('ReceivedSummary'),
    ReceivedMessage: component('ReceivedMessage'),
    ReceivedSearch: body('searchReceived'),
    ReceivedList: answer('searchReceived'),
  },
  'inbound-event': { InboundEvent: component('Event_inbound') },
  events: {
    ...Object.fromEntries(OWN_EVENTS.map((event) => [EVENT_TYPES[event], component(`Event_${event}`)])),
    Event: component('Event'),
    EventSearch: body('searchEvents'),
  },
  webhooks: {
    Webhook: component('Webhook'),
    WebhookMade: component('WebhookMade'),
    WebhookBody: body('createWebhook'),
    WebhookList: answer('listWebhooks'),
    WebhookSecret: answer('addWebhookSecret'),
    Delivery: component('Delivery'),
    DeliveryQuery: query('listDeliveries'),
    DeliveryList: answer('listDeliveries'),
    DeadReplay: body('replayDead'),
    Replayed: answer('replayDead'),
  },
  reports: {
    ReportsQuery: query('readReports'),
    Reports: answer('readReports'),
    TlsReportsQuery: query('readTlsReports'),
    TlsReports: answer('readTlsReports'),
    ReceivedReportsQuery: query('listReceivedReports'),
    ReceivedReports: answer('listReceivedReports'),
  },
  exports: {
    MessageExport: body('exportMessages'),
    BounceExport: body('exportBounces'),
    SuppressionExport: body('exportSuppressions'),
    ActivityExport: body('exportActivity'),
    ReportExport: body('exportReports'),
    TlsReportExport: body('exportTlsReports'),
  },
  resources: {
    Suppression: component('Suppression'),
    SuppressionsBody: body('addSuppressions'),
    SuppressionsAdded: answer('addSuppressions'),
    SuppressionSearch: body('searchSuppressions'),
    SuppressionList: answer('searchSuppressions'),
    Domain: component('Domain'),
    DomainBody: body('addDomain'),
    DomainChecked: answer('verifyDomain'),
    DomainList: answer('listDomains'),
    Erasure: answer('readErasure'),
    LimitEntry: component('LimitEntry'),
    Server: component('Server'),
    StatsEntry: component('StatsEntry'),
    StatsGroup: component('StatsGroup'),
    StatsQuery: query('readStats'),
    Stats: answer('readStats'),
    Page: query('listWebhooks'),
  },
}

/** The text of each file of types, by its name. Takes the OpenAPI document of the public routes. */
export function makeDeclarations(document: Node): Record<string, string> {
  const homes = new Map(
    Object.entries(GROUPS).flatMap(([file, types]) => Object.keys(types).map((name) => [name, file])),
  )
  const files = Object.entries(GROUPS).map(([file, types]) => {
    const declared = Object.entries(types).map(([name, place]) => writeDeclaration(document, name, place))
    return [file, [...writeImports(file, declared.join('\n'), homes), ...declared]] as const
  })
  return Object.fromEntries(
    [...files, ['refusals', [refusalCodes(document)]] as const].map(([file, parts]) => [
      file,
      `${[headOf(file), ...parts].join('\n\n')}\n`,
    ]),
  )
}

function headOf(file: string): string {
  return `/** ${file} - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */`
}

/** Names that a file imports from the others. */
function writeImports(file: string, text: string, homes: ReadonlyMap<string, string>): string[] {
  const code = text.replace(/\/\*\*.*?\*\//gs, '')
  const named = new Map<string, string[]>()
  for (const [name, home] of homes)
    if (home !== file && new RegExp(`\\b${name}\\b`).test(code)) named.set(home, [...(named.get(home) ?? []), name])
  const lines = [...named].map(([home, names]) => `import type { ${names.sort().join(', ')} } from './${home}.ts'`)
  return lines.length === 0 ? [] : [lines.join('\n')]
}

function refusalCodes({ components }: Node): string {
  const names = Object.keys(components.schemas).filter((name) => name.startsWith('Refusal_'))
  const codes = names.map((name) => literal(name.slice('Refusal_'.length)))
  return `/** Why a request was refused. */\nexport type RefusalCode =${writeUnion(codes, { isWritten: false, indent: '' })}`
}

function writeDeclaration(document: Node, name: string, place: Place): string {
  const schema = schemaAt(document, place)
  const isWritten = 'of' in place ? place.of !== 'answer' : WRITTEN.includes(place.component)
  const text = writeType(schema, { isWritten, indent: '' })
  const isObject = schema.type === 'object' && text.startsWith('{')
  return `${writeComment(schema, '')}export ${isObject ? `interface ${name} ${text}` : `type ${name} =${spaced(text)}`}`
}

function schemaAt(document: Node, place: Place): Node {
  if ('component' in place) return document.components.schemas[place.component]
  const operations = Object.values<Node>(document.paths).flatMap((methods) => Object.values<Node>(methods))
  const operation = operations.find(({ operationId }) => operationId === place.route)
  if (place.of === 'body') return operation.requestBody.content['application/json'].schema
  if (place.of === 'answer')
    return Object.entries<Node>(operation.responses).find(([status]) => /^2/.test(status))?.[1].content[
      'application/json'
    ].schema
  const parameters: Node[] = operation.parameters.filter((one: Node) => one.in === 'query')
  const properties = parameters.map(({ name, schema, description }) => [name, { description, ...schema }])
  return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: false }
}

interface Style {
  readonly isWritten: boolean
  readonly indent: string
}

function writeType(schema: Node, style: Style): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref)
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return writeUnion(schema.enum.map(literal), style)
  const alternatives = schema.oneOf ?? (schema.properties === undefined ? schema.anyOf : undefined)
  if (alternatives !== undefined)
    return writeUnion(
      alternatives.map((one: Node) => writeType(one, style)),
      style,
    )
  const types: readonly string[] = [schema.type ?? 'unknown'].flat()
  return writeUnion(
    types.map((type) => writePlainType(type, schema, style)),
    style,
  )
}

function writePlainType(type: string, schema: Node, style: Style): string {
  if (type === 'integer') return 'number'
  if (type === 'array') {
    const item = writeType(schema.items, style)
    const prefix = style.isWritten ? 'readonly ' : ''
    return item.includes('|') && !item.startsWith('{') ? `${prefix}(${item})[]` : `${prefix}${item}[]`
  }
  return type === 'object' ? writeObjectType(schema, style) : type
}

function writeObjectType({ properties = {}, required = [], additionalProperties }: Node, style: Style): string {
  const indent = `${style.indent}  `
  const fields = Object.entries<Node>(properties).map(([name, field]) => {
    const mark = required.includes(name) ? '' : '?'
    return `${writeComment(field, indent)}${indent}${name}${mark}:${spaced(writeType(field, { ...style, indent }))}`
  })
  if (typeof additionalProperties === 'object' && fields.length === 0)
    return `Record<string, ${writeType(additionalProperties, style)}>`
  if (additionalProperties !== false) fields.push(`${indent}[field: string]: unknown`)
  return `{\n${fields.join('\n')}\n${style.indent}}`
}

/** A union of values; if they do not fit into a line, one line each. */
function writeUnion(parts: readonly string[], { indent }: Style): string {
  const line = [...new Set(parts)].join(' | ')
  const fits = line.length + indent.length < COLUMNS - NAME_COLUMNS
  return parts.length === 1 || fits || line.includes('\n')
    ? line
    : parts.map((part) => `\n${indent}  | ${part}`).join('')
}

/** A type after its `:` or `=`. */
function spaced(type: string): string {
  return type.startsWith('\n') ? type : ` ${type}`
}

function writeComment({ description }: Node, indent: string): string {
  if (description === undefined) return ''
  const line = `${indent}/** ${description} */`
  if (line.length <= COLUMNS) return `${line}\n`
  const words = String(description).split(' ')
  const lines: string[] = ['']
  for (const word of words) {
    const last = lines.at(-1) ?? ''
    if (`${indent} * ${last} ${word}`.length > COLUMNS) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return `${indent}/**\n${lines.map((one) => `${indent} * ${one}\n`).join('')}${indent} */\n`
}

function nameOf(reference: string): string {
  const name = reference.slice(reference.lastIndexOf('/') + 1)
  return name.startsWith('Event_') ? (EVENT_TYPES[name.slice('Event_'.length)] as string) : name
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}
