/**
 * generate - values that a JSON Schema of an OpenAPI document allows, drawn from a seed
 *
 * It supports the keywords that the document uses. Optional fields are present half of the time.
 */

// biome-ignore lint/suspicious/noExplicitAny: a schema has whatever shape the document gives it.
export type DocumentSchema = any

/** Texts that between them match every pattern of the document. */
const TEXTS = ['Text', 'text/plain', 'X-Thing-1', 'x']
const SAMPLES: Readonly<Record<string, (number: number) => string>> = {
  email: (number) => `person${number}@simulator.test`,
  hostname: (number) => `mail${number}.example`,
  uri: (number) => `https://hooks${number}.example/`,
  uuid: (number) => `01a1f8d8-8300-7000-8000-${String(number).padStart(12, '0')}`,
  'date-time': () => '2026-11-20T12:00:00.5+01:00',
}

/** Makes a generator. `resolve` finds what a `$ref` names. */
export function makeGenerator(
  seed: number,
  resolve: (ref: string) => DocumentSchema,
): (schema: DocumentSchema) => unknown {
  let state = seed
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  function generate(schema: DocumentSchema): unknown {
    if (schema.$ref !== undefined) return generate(resolve(schema.$ref))
    if ('const' in schema) return schema.const
    if (schema.enum !== undefined) return schema.enum[next(schema.enum.length)]
    if (schema.oneOf !== undefined) return generate(schema.oneOf[next(schema.oneOf.length)])
    const types = [schema.type].flat()
    const type = types[next(types.length)]
    if (type === 'null') return null
    if (type === 'boolean') return next(2) === 0
    if (type === 'integer') return integer(schema)
    if (type === 'array') return list(schema)
    return type === 'object' ? fields(schema) : text(schema)
  }
  function integer({ minimum = 0, maximum = 100 }: DocumentSchema): number {
    return [minimum, maximum, minimum + next(maximum - minimum + 1)][next(3)] as number
  }
  function list({ minItems = 0, maxItems = 3, uniqueItems = false, items }: DocumentSchema): unknown[] {
    const length = minItems + next(Math.min(3, maxItems - minItems + 1))
    const made = Array.from({ length }, () => generate(items))
    return uniqueItems ? [...new Set(made)] : made
  }
  function fields({
    properties = {},
    required = [],
    allOf,
    additionalProperties,
    propertyNames,
    minProperties = 0,
  }: DocumentSchema) {
    const made: Record<string, unknown> = {}
    // No schema defines placeholders. The generated bodies have none, and so no values.
    if (propertyNames?.pattern?.includes('A-Za-z0-9_')) return made
    const alternatives = allOf?.[0].anyOf
    const wanted: string[] = [...required, ...(alternatives?.[next(alternatives.length)]?.required ?? [])]
    for (const [name, schema] of Object.entries(properties))
      if (wanted.includes(name) || next(2) === 0) made[name] = generate(schema)
    if (typeof additionalProperties === 'object' && (minProperties > 0 || next(2) === 0))
      made[text(propertyNames ?? {})] = generate(additionalProperties)
    return made
  }
  function text({ format, pattern, contentEncoding, minLength = 0, maxLength = 50 }: DocumentSchema): string {
    if (contentEncoding === 'base64') return Buffer.from('x'.repeat(next(9))).toString('base64')
    const sample = SAMPLES[format]
    if (sample !== undefined) return sample(next(1_000))
    if (pattern === undefined)
      return ['é'.repeat(Math.max(1, minLength)), 'é'.repeat(maxLength), 'Some text'][next(3)] as string
    const found = TEXTS.filter((one) => new RegExp(pattern, 'u').test(one) && one.length <= maxLength)
    return found[next(found.length)] as string
  }
  return generate
}

/** Sources of messages. */
const SOURCES: readonly unknown[] = ['api', 'smtp', 'broadcast']

/**
 * A body of a client that follows the document's descriptions: a test server has no limits of its own, and an index is
 * that of a message.
 */
export function withRules(made: Record<string, unknown>): Record<string, unknown> {
  const body = { ...made }
  if (body.mode === 'test') for (const name of ['perMinuteLimit', 'monthlyCap']) delete body[name]
  // A generated time is in the past, or further ahead than a message may be scheduled.
  const sends = [body, ...(Array.isArray(body.messages) ? body.messages : [])]
  for (const one of sends) if (typeof one === 'object' && one !== null && 'from' in one) delete one.sendAt
  // A page after another one does not wait.
  if (body.after !== undefined) delete body.waitSeconds
  // Formats of other providers do not have every event.
  if (body.format !== undefined && body.format !== 'sendwright') delete body.events
  // A period ends after its begin, and the source of a report is an IP address.
  if (Date.parse(String(body.from)) >= Date.parse(String(body.to))) delete body.to
  if (body.source !== undefined && !SOURCES.includes(body.source)) delete body.source
  // It needs a header of its own, with a URL for each recipient.
  delete body.unsubscribe
  if (typeof body.index === 'number') body.index %= (body.messages as unknown[]).length
  return body
}
