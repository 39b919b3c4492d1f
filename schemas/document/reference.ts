/**
 * reference - the reference of the routes in Markdown, derived from an OpenAPI document
 *
 * Spec openapi.document
 */

// biome-ignore lint/suspicious/noExplicitAny: a document is what OpenAPI says it is.
type Node = any

const KEYS: Readonly<Record<string, string>> = { serverKey: 'server', accountKey: 'account', operatorKey: 'operator' }

/** The text of all groups of a document, below a heading of the second degree. */
export function makeReference(document: Node): string {
  const operations = Object.entries<Node>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Node>(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const groups = document.tags.map(({ name }: Node) => {
    const ofGroup = operations.filter(({ operation }) => operation.tags[0] === name)
    return [`## ${name}`, ...ofGroup.map((one) => operationText(document, one))].join('\n\n')
  })
  const bodies = operations.map(({ operation }) => operation.requestBody?.content['application/json']?.schema)
  const types = namedTypes(document, bodies.filter(Boolean))
  const typeTexts = types.map((name) => typeSection(document, name))
  return [...groups, ...(types.length === 0 ? [] : ['## Types of fields', ...typeTexts])].join('\n\n')
}

/** Names of the types of fields of these bodies, and of fields of those types, in order. */
function namedTypes(document: Node, bodies: readonly Node[]): string[] {
  const found = new Set<string>()
  const visit = (body: Node): void => {
    for (const field of Object.values<Node>(resolved(document, body).properties ?? {}))
      for (const part of [field, field.items ?? {}, ...(field.oneOf ?? [])]) {
        if (part.$ref === undefined || found.has(nameOf(part.$ref))) continue
        found.add(nameOf(part.$ref))
        visit(part)
      }
  }
  for (const body of bodies) visit(body)
  return [...found].sort()
}

function typeSection(document: Node, name: string): string {
  const schema = document.components.schemas[name]
  const forms: readonly Node[] = schema.oneOf ?? schema.anyOf ?? [schema]
  const plain = forms.filter(({ properties }) => properties === undefined)
  const objects = forms.filter(({ properties }) => properties !== undefined)
  const either = [...plain.map(typeText), ...objects.map(() => 'an object with these fields')].join(', or ')
  return [`### ${name}`, `Given as ${either}:`, ...objects.map((form) => fieldsText(document, form))].join('\n\n')
}

interface Operation {
  readonly path: string
  readonly method: string
  readonly operation: Node
}

function operationText(document: Node, { path, method, operation }: Operation): string {
  const keys = operation.security.map((one: Node) => KEYS[Object.keys(one)[0] ?? '']).join(' or ')
  const [success] = Object.keys(operation.responses).filter((status) => status.startsWith('2'))
  const answer = operation.responses[success ?? '']?.content
  const body = operation.requestBody?.content['application/json']
  const parts = [
    `### ${operation.summary}`,
    `\`${method} ${path}\`, ${keys === '' ? 'without a key' : `with ${keys === 'server' ? 'a' : 'an'} ${keys} key`}. Answers ${success}${answer === undefined ? ' without a body' : ''}.`,
    parametersText(operation.parameters),
    body === undefined ? '' : fieldsText(document, body.schema),
    body === undefined ? '' : exampleText(body.example),
    answer?.['application/json'] === undefined ? '' : `Answer:\n\n${exampleText(answer['application/json'].example)}`,
    refusalsText(operation.responses),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

function parametersText(parameters: readonly Node[]): string {
  if (parameters.length === 0) return ''
  const rows = parameters.map(({ name, in: place, required, schema, description }) => [
    `\`${name}\``,
    `${place}${required === true ? ', needed' : ''}`,
    [typeText(schema), description ?? schema.description].filter(Boolean).join('. '),
  ])
  return formatTable(['Parameter', 'In', 'What'], rows)
}

function fieldsText(document: Node, given: Node): string {
  const schema = resolved(document, given)
  const alternatives: readonly string[] = (schema.allOf?.[0].anyOf ?? []).map(({ required }: Node) => required[0])
  const rows = Object.entries<Node>(schema.properties ?? {}).map(([name, field]) => {
    const isNeeded = schema.required?.includes(name)
    const either = alternatives.includes(name)
      ? `this or ${alternatives.filter((one) => one !== name).join(', ')}`
      : 'no'
    const told = resolved(document, field)
    return [
      `\`${name}\``,
      isNeeded === true ? 'yes' : either,
      [typeText(field), told.description].filter(Boolean).join('. '),
    ]
  })
  return rows.length === 0 ? '' : formatTable(['Field', 'Needed', 'What'], rows)
}

function exampleText(example: unknown): string {
  return `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``
}

/** The refusals that are this route's own: common refusals are at the top of the document. */
function refusalsText(responses: Node): string {
  const told = Object.entries<Node>(responses).flatMap(([status, { content }]) =>
    Object.entries<Node>(content?.['application/json']?.examples ?? {}).map(([code, { value }]) => ({
      status,
      code,
      value,
    })),
  )
  const own = told.filter(({ code }) => !COMMON.includes(code))
  return own.length === 0 ? '' : `Refused with ${own.map(({ status, code }) => `${status} \`${code}\``).join(', ')}.`
}

/** Refusals that need no word at each route. */
export const COMMON: readonly string[] = [
  'unauthorized',
  'wrong_token_kind',
  'unsupported_media_type',
  'invalid_request',
  'internal_error',
  'data_damaged',
  'unavailable',
]

/** The type of a field with its bounds, in a few words. */
function typeText(schema: Node): string {
  if (schema.$ref !== undefined) return `[${nameOf(schema.$ref)}](#${nameOf(schema.$ref).toLowerCase()})`
  if (schema.oneOf !== undefined) return schema.oneOf.map(typeText).join(' or ')
  if (schema.const !== undefined) return `\`${schema.const}\``
  if (schema.enum !== undefined) return schema.enum.map((one: unknown) => `\`${one}\``).join(', ')
  const types = [schema.type ?? 'any'].flat().filter((type) => type !== 'null')
  const bounds = [
    schema.format,
    rangeText(schema.minLength, schema.maxLength, 'characters'),
    rangeText(schema.minimum, schema.maximum, ''),
    rangeText(schema.minItems, schema.maxItems, 'entries'),
    schema.maxProperties === undefined ? undefined : `at most ${schema.maxProperties} entries`,
  ].filter(Boolean)
  const inner = schema.items === undefined ? '' : ` of ${typeText(schema.items)}`
  const orNull = [schema.type].flat().includes('null') ? ' or null' : ''
  return `${types.join(' or ')}${inner}${orNull}${bounds.length === 0 ? '' : ` (${bounds.join(', ')})`}`
}

function rangeText(min: number | undefined, max: number | undefined, unit: string): string | undefined {
  if (min === undefined && max === undefined) return undefined
  const range = max === undefined ? `at least ${min}` : min === undefined ? `at most ${max}` : `${min} to ${max}`
  return `${range} ${unit}`.trim()
}

function resolved(document: Node, schema: Node): Node {
  return schema.$ref === undefined ? schema : document.components.schemas[nameOf(schema.$ref)]
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}

function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
