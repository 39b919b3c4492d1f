/** Tests of src/edge/validate.ts and the issues it lists. */

import { test } from 'tap'

import { EMAIL_BODY } from '../../../schemas/email.ts'
import { ROUTES } from '../../../schemas/routes.ts'
import { compileQuery } from '../../../src/http/shape/query.ts'
import { compileBody } from '../../../src/http/shape/validate.ts'

const check = compileBody(EMAIL_BODY)

function pathsOf(json: string): string[] {
  const checked = check(JSON.parse(json))
  return checked.ok ? [] : checked.issues.map((issue) => issue.path)
}

/** Body as a client wrote it, paths in the order of the answer. */
const ORDER: readonly (readonly [string, string, readonly string[]])[] = [
  ['missing fields in the order of the schema', '{}', ['from', 'to', 'subject', 'text']],
  ['body order, not schema order', '{"subject":"","to":[],"from":"x","text":"t"}', ['subject', 'to', 'from']],
  ['wrong before missing', '{"x":1,"html":""}', ['x', 'html', 'from', 'to', 'subject']],
  [
    'string and object addresses',
    '{"to":["x",{"email":"y"},{"email":"a@b.co","name":""},{"name":3,"nick":1}],"from":"a@b.co","subject":"s","text":"t"}',
    ['to.0', 'to.1.email', 'to.2.name', 'to.3.name', 'to.3.nick', 'to.3.email'],
  ],
  [
    'maps',
    '{"headers":{"From":"x","X-B":"","X-C":1},"metadata":{"":"v","k":null},"from":"a@b.co","to":["a@b.co"],"subject":"s","text":"t"}',
    ['headers.From', 'headers.X-B', 'headers.X-C', 'metadata.', 'metadata.k'],
  ],
  [
    'an unknown field named like one of the language',
    '{"__proto__":{"to":1},"constructor":1,"from":"a@b.co","to":["a@b.co"],"subject":"s","text":"t"}',
    ['__proto__', 'constructor'],
  ],
  [
    'nothing below a field that is wrong itself',
    '{"from":[1,[2]],"to":{"0":"x"},"subject":{},"text":"t"}',
    ['from', 'to', 'subject'],
  ],
]

for (const [name, json, paths] of ORDER) {
  test(`validate: issues: ${name} [error.issues]`, async (t) => t.same(pathsOf(json), paths))
}

test('validate: the first 100 issues and no more [error.issues]', async (t) => {
  const fields = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, 1]))
  const paths = pathsOf(JSON.stringify(fields))
  t.same(paths, Object.keys(fields).slice(0, 100))
})

test('validate: a list that is too long is told once and not looked into [error.issues]', async (t) => {
  const many = Array.from({ length: 100_000 }, () => 'x')
  const rest = { from: 'a@b.co', subject: 's', text: 't' }
  t.same(pathsOf(JSON.stringify({ ...rest, to: many, cc: many })), ['to'])
  t.same(pathsOf(JSON.stringify({ ...rest, cc: many })), ['to'])
  t.same(pathsOf(JSON.stringify({ ...rest, to: ['a@b.co'], attachments: many })), ['attachments'])
})

test('validate: a name in a path is bounded [error.issues]', async (t) => {
  const [path = ''] = pathsOf(JSON.stringify({ ['x'.repeat(100_000)]: 1 }))
  t.equal(path.length, 1001)
})

test('validate: no issue says what the value was [error.issues]', async (t) => {
  const checked = check({ from: 'secret-value', to: ['secret-value'], subject: '', tag: 'secret-value\n' })
  t.equal(checked.ok, false)
  if (checked.ok) return
  for (const { message } of checked.issues) {
    t.notMatch(message, /secret/)
    t.match(message, /^[A-Z].*[^.]$/)
  }
})

test('validate: U+0000 and lone surrogates anywhere, unless the text could not name them [text.forbidden]', async (t) => {
  const body = { from: 'a@b.co', to: ['a@b.co'], subject: 's', text: 'a\0b', metadata: { k: '\ud83d' } }
  t.same(pathsOf(JSON.stringify(body)), ['text', 'metadata.k'])
  t.same(pathsOf(JSON.stringify({ ...body, text: 'a', metadata: { k: '\ud83d\ude00' } })), [])
})

const query = compileQuery(ROUTES.listDomains.query)
const none = compileQuery(null)
const ID = '01890c5a-0000-7000-8000-0123456789ab'

test('query: parameters are checked, and the defaults are there [request.query]', async (t) => {
  t.same(query(''), { ok: true, value: { limit: '50' } })
  t.same(query(`after=${ID}&limit=1`), { ok: true, value: { after: ID, limit: '1' } })
  t.same(query('limit=100'), { ok: true, value: { limit: '100' } })
  t.same(none(''), { ok: true, value: {} })
})

test('query: what is wrong has the name of its parameter [request.query]', async (t) => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['limit=0', ['limit']],
    ['limit=101', ['limit']],
    ['limit=', ['limit']],
    ['limit=1.5', ['limit']],
    ['limit=x&after=y', ['limit', 'after']],
    ['limit=5&limit=5', ['limit']],
    ['Limit=5', ['Limit']],
    ['__proto__=5', ['__proto__']],
    ['x=1&x=2', ['x']],
  ]
  for (const [text, paths] of cases) {
    const checked = query(text)
    t.same(checked.ok ? [] : checked.issues.map((issue) => issue.path), paths, text)
  }
  t.equal(none('a=1').ok, false)
})
