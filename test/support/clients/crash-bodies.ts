/**
 * crash-bodies - bodies for fuzzing, generated from a route's own schema: mostly right, here and there wrong, and
 * then, as bytes, broken in ways that no serializer would.
 */
import fc from 'fast-check'

/** The part of JSON Schema that the bodies of our routes use. */
export interface BodySchema {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: BodySchema
  readonly properties?: Readonly<Record<string, BodySchema>>
  readonly required?: readonly string[]
  readonly propertyNames?: BodySchema
  readonly additionalProperties?: boolean | BodySchema
  readonly maxProperties?: number
  readonly then?: BodySchema
  readonly else?: BodySchema
}

const LENGTH_MAX = 1_100
const LONE_SURROGATE = /\p{Cs}/u
const ITEMS_MAX = 4

/** Texts of each named format, at its edges too; and just wrong ones. */
const RIGHT: Readonly<Record<string, readonly string[]>> = {
  address: ['a@example.com', "o'b+c@mail.example.org", 'A@Example.COM', `${'l'.repeat(64)}@${'d'.repeat(63)}.com`],
  mailbox: ['a@example.com', 'a+b@Example.COM', `${'l'.repeat(64)}@${'d'.repeat(63)}.com`],
  simulator: ['you@simulator.test', 'Someone+else@Simulator.test'],
  'sending-domain': ['acme.example', 'mail.acme.example', 'Acme.EXAMPLE', 'one.acme.co.uk'],
  'header-name': ['X-A', 'Reply-To', 'List-Id', '__proto__', 'constructor', 'x'.repeat(76)],
  base64: ['YQ==', 'YWI=', 'YWJj', 'A'.repeat(4_000)],
  'webhook-url': ['https://hooks.example/a?b=c', 'https://hooks.example:8443', 'HTTPS://Hooks.Example/%20'],
  uuid: ['00000000-0000-7000-8000-000000000000', 'FFFFFFFF-FFFF-7FFF-BFFF-FFFFFFFFFFFF'],
  'date-time': ['2026-01-02T03:04:05.678Z', '1970-01-01T00:00:00+23:59', '9999-12-31T23:59:59.999Z'],
}
const WRONG: Readonly<Record<string, readonly string[]>> = {
  address: ['a@b@c', 'a@-x.com', '"a b"@example.com', 'a@[127.0.0.1]', 'ä@example.com', `${'l'.repeat(65)}@a.com`],
  mailbox: ['a', '@example.com', 'a b@example.com', 'a@', `a@${'d'.repeat(400)}`],
  simulator: ['you@example.com'],
  'sending-domain': ['com', 'a..b', 'simulator.test', `${'d.'.repeat(130)}com`],
  'header-name': ['from', 'ARC-Seal', 'X-Sendwright-A', 'a b', 'a:b', 'x'.repeat(77)],
  base64: ['YQ', 'Y Q==', '====', 'YQ==YQ=='],
  'webhook-url': ['http://hooks.example', 'https://a b@hooks.example', 'https://hooks.example/#', 'hooks.example', ''],
  uuid: ['1', '', '00000000-0000-7000-8000-00000000000g'],
  'date-time': ['2026-02-30T00:00:00Z', '2026-01-02', '0', '2026-01-02T03:04:05'],
}
const NASTY = [
  '',
  '\0',
  '\ud800',
  '\udc00x',
  'a\r\nBcc: x@example.com',
  '\u{1F600}',
  '__proto__',
  '\u0085',
  '\ufeff',
  ' ',
]

const nasty: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom(...NASTY),
  fc.nat(LENGTH_MAX).map((length) => 'x'.repeat(length)),
)
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), nasty, fc.constantFrom(1e308, -0, 2 ** 53, 0.1))

/** Values of a schema. With `wrong`, one in a hundred places has a value that the schema forbids. */
export function valuesOf(schema: BodySchema, wrong: number): fc.Arbitrary<unknown> {
  const right = followerOf(schema, wrong)
  if (wrong === 0) return right
  return fc.oneof({ weight: 100 - wrong, arbitrary: right }, { weight: wrong, arbitrary: anything })
}

function followerOf(schema: BodySchema, wrong: number): fc.Arbitrary<unknown> {
  // Our API chooses with `if` a text: an address alone, or with a name.
  if (schema.then !== undefined && schema.else !== undefined)
    return fc.oneof(valuesOf(schema.then, wrong), valuesOf({ type: 'object', ...schema.else }, wrong))
  const choices = 'const' in schema ? [schema.const] : schema.enum
  if (choices !== undefined) return sometimes(fc.constantFrom(...choices), anything, wrong)
  const types = schema.type === undefined ? [] : [schema.type].flat()
  return types.length === 0 ? anything : fc.oneof(...types.map((type) => ofType(schema, type, wrong)))
}

function ofType(schema: BodySchema, type: string, wrong: number): fc.Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return textOf(schema, wrong)
    case 'integer': {
      const { minimum = 0, maximum = 100 } = schema
      const right = fc.integer({ min: minimum, max: maximum })
      return sometimes(right, fc.constantFrom(minimum - 1, maximum + 1), wrong)
    }
    case 'boolean':
      return fc.boolean()
    case 'array': {
      const { minItems = 0, maxItems = ITEMS_MAX } = schema
      const item = valuesOf(schema.items ?? {}, wrong)
      const lengths = { minLength: minItems, maxLength: ITEMS_MAX }
      const few = schema.uniqueItems === true ? fc.uniqueArray(item, lengths) : fc.array(item, lengths)
      const edge = fc.tuple(item, fc.constantFrom(minItems - 1, maxItems, maxItems + 1))
      const many = edge.map(([one, count]) => Array(Math.max(0, count)).fill(one))
      return sometimes(few, many, wrong)
    }
    case 'object':
      return objectOf(schema, wrong)
    default:
      return fc.constant(null)
  }
}

function sometimes<T>(right: fc.Arbitrary<T>, other: fc.Arbitrary<T>, wrong: number): fc.Arbitrary<T> {
  if (wrong === 0) return right
  return fc.oneof({ weight: 100 - wrong, arbitrary: right }, { weight: wrong, arbitrary: other })
}

function textOf({ format, pattern, minLength = 0, maxLength = 50 }: BodySchema, wrong: number): fc.Arbitrary<string> {
  if (format !== undefined) {
    const [right, mistaken] = [RIGHT[format], WRONG[format]]
    if (right === undefined || mistaken === undefined) throw new Error(`No texts of the format ${format}: add some`)
    return sometimes(fc.constantFrom(...right), fc.oneof(fc.constantFrom(...mistaken), nasty), wrong)
  }
  const plain = plainText(pattern, { minLength, maxLength: Math.min(maxLength, 50) })
  const isRight = (text: string) => text.length >= minLength && text.length <= maxLength && !LONE_SURROGATE.test(text)
  const right = plain.filter(isRight)
  const edges = [minLength - 1, minLength, maxLength, maxLength + 1].filter((length) => length >= 0)
  const edge = fc.constantFrom(...edges).map((length) => 'é'.repeat(length))
  return sometimes(right, fc.oneof(edge, nasty), wrong)
}

/** Texts by their characters. Building one of these scans all of Unicode. */
const plainTexts = new Map<string, fc.Arbitrary<string>>()

function plainText(
  pattern: string | undefined,
  lengths: { readonly minLength: number; readonly maxLength: number },
): fc.Arbitrary<string> {
  const key = pattern ?? JSON.stringify(lengths)
  const known =
    plainTexts.get(key) ??
    (pattern === undefined
      ? fc.string({ unit: 'grapheme-composite', ...lengths })
      : fc.stringMatching(new RegExp(pattern), { size: 'small' }))
  plainTexts.set(key, known)
  return known
}

function objectOf(schema: BodySchema, wrong: number): fc.Arbitrary<unknown> {
  const { properties, propertyNames, additionalProperties, maxProperties = ITEMS_MAX } = schema
  if (properties === undefined) {
    const key = propertyNames === undefined ? fc.string({ maxLength: 9 }) : textOf(propertyNames, wrong)
    const value = valuesOf(typeof additionalProperties === 'object' ? additionalProperties : { type: 'string' }, wrong)
    const maxKeys = wrong === 0 ? ITEMS_MAX : maxProperties + 1
    return fc.dictionary(key, value, { maxKeys, size: 'small' })
  }
  const known = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, valuesOf(one, wrong)]))
  const required = (schema.required ?? []).filter((name) => name in known)
  // A body also needs a text, which the schema requires with `anyOf`.
  const requiredKeys = 'text' in known ? [...required, 'text'] : required
  const right = fc.record(known, { requiredKeys })
  return sometimes<unknown>(right, fc.record({ ...known, other: anything }, { requiredKeys: [] }), wrong)
}

/** The replacement for some part of a body's text, which no serializer writes. */
const BROKEN = [
  '1e999',
  '-',
  '9'.repeat(400),
  '"\\ud800"',
  '"\\u0000"',
  '[[[[',
  '['.repeat(20_000),
  '{"a":'.repeat(5_000),
  `${'['.repeat(3_000)}${']'.repeat(3_000)}`,
  ',',
  '"to":["dup@example.com"],"to":[],',
  '"__proto__":{"x":1},',
  '"constructor":null,',
  '\u2028',
  '//',
  'NaN',
  '\t\n\r ',
]

/** A body as bytes: right, with something wrong in it, or broken. */
export function bytesOf(schema: BodySchema): fc.Arbitrary<Buffer> {
  const right = serialized(valuesOf(schema, 0))
  const wrong = serialized(valuesOf(schema, 3))
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  const broken = fc.tuple(right, fc.constantFrom(...BROKEN), share, fc.nat(3)).map(([bytes, piece, part, skip]) => {
    const at = Math.floor(bytes.length * part)
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(piece), bytes.subarray(at + skip)])
  })
  const cut = fc.tuple(right, share).map(([bytes, part]) => bytes.subarray(0, Math.floor(bytes.length * part)))
  const noise = fc.tuple(right, fc.uint8Array({ minLength: 1, maxLength: 8 })).map(([bytes, more]) => {
    return Buffer.concat([bytes.subarray(0, bytes.length >> 1), more, bytes.subarray(bytes.length >> 1)])
  })
  return fc.oneof(
    { weight: 4, arbitrary: right },
    { weight: 4, arbitrary: wrong },
    { weight: 2, arbitrary: broken },
    { weight: 1, arbitrary: cut },
    { weight: 1, arbitrary: noise },
  )
}

function serialized(value: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> {
  return value.map((one) => Buffer.from(JSON.stringify(one) ?? ''))
}
