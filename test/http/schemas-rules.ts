/** Tests of schemas/: code and tests cite exactly the rules of the README, and the tables are consistent. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { test } from 'tap'

import { REFUSALS } from '../../schemas/refusals.ts'
import { ROUTES } from '../../schemas/routes.ts'
import { compileQuery } from '../../src/http/shape/query.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { ROOT } from '../support/machine/root.ts'

const README = readFileSync(join(ROOT, 'schemas/README.md'), 'utf8')
const RULES = new Set([...README.matchAll(/^\| `([a-z]+\.[a-z.-]+)` \|/gm)].map(([, id]) => id ?? ''))

/** Rule ids that a text cites: after the word Spec, or in brackets at the end of a test's name. */
function citedIn(text: string): string[] {
  const lists = [...text.matchAll(/Spec ([a-z]+\.[a-z.-]*[a-z](?:,\s+(?:\*\s+)?[a-z]+\.[a-z.-]*[a-z])*)/g)]
  const names = [...text.matchAll(/ \[([a-z]+\.[a-z.-]*[a-z])\](?=['`]| \[)/g)]
  return [...lists.flatMap(([, list = '']) => list.split(/,\s+(?:\*\s+)?/)), ...names.map(([, id = '']) => id)]
}

function readSources(folder: string): readonly { name: string; text: string }[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  return names.map((name) => ({ name: `${folder}/${name}`, text: readFileSync(join(ROOT, folder, name), 'utf8') }))
}

test('schemas: rules stand in the README once', async (t) => {
  const ids = [...README.matchAll(/^\| `([a-z]+\.[a-z.-]+)` \|/gm)].map(([, id]) => id)
  t.equal(ids.length, RULES.size)
  t.ok(RULES.size > 50)
})

test('schemas: a rule that the edge or its schemas cite is in the README', async (t) => {
  for (const { name, text } of ['schemas', 'src/http', 'test/http', 'test/sending'].flatMap(readSources)) {
    t.same(
      citedIn(text).filter((id) => !RULES.has(id)),
      [],
      name,
    )
  }
})

test('schemas: a rule of the README is cited somewhere', async (t) => {
  const cited = new Set(['schemas', 'src', 'test'].flatMap(readSources).flatMap(({ text }) => citedIn(text)))
  const bounds = readFileSync(join(ROOT, 'test/sending/email-form.ts'), 'utf8')
  const idle = [...RULES].filter((id) => !cited.has(id) && !bounds.includes(`'${id}'`))
  t.same(idle, [])
})

test('schemas: each route has schemas that compile, a name and a path of its own [route.table]', async (t) => {
  const routes = Object.entries(ROUTES)
  for (const [name, route] of routes) {
    t.equal(route.name, name)
    for (const schema of [route.body, route.success.body])
      if (schema !== null) t.doesNotThrow(() => compileBody(schema)(null))
    t.doesNotThrow(() => compileQuery(route.query)(''))
    t.equal(route.success.status === 204, route.success.body === null && route.method === 'DELETE')
  }
  t.equal(new Set(routes.map(([, { method, path }]) => `${method} ${path}`)).size, routes.length)
})

test('schemas: no address is in a path [route.table]', async (t) => {
  const names = Object.values(ROUTES).flatMap(({ path }) => path.match(/\{\w+\}/g) ?? [])
  t.ok(names.includes('{id}'))
  t.same(
    names.filter((name) => !/^\{(id|kind|position|[a-z]+Id)\}$/.test(name)),
    [],
  )
})

test('schemas: refusals go down the order of the contract [refusal.order]', async (t) => {
  const codes = REFUSALS.map(({ code }) => code)
  t.equal(new Set(codes).size, codes.length)
  const order = [
    ...['unauthorized', 'method_not_allowed', 'wrong_token_kind', 'unsupported_media_type', 'invalid_request'],
    ...['idempotency_key_reused', 'payment_required', 'account_not_active', 'account_paused', 'not_found'],
    ...['stream_not_found', 'stream_kind_not_allowed', 'domain_not_verified', 'message_too_large', 'limit_too_high'],
    ...['stream_archived', 'stream_paused', 'domain_exists', 'rate_limited', 'cap_reached'],
  ]
  const places = order.map((code) => codes.indexOf(code as (typeof codes)[number]))
  t.same(
    places,
    [...places].sort((one, other) => one - other),
  )
  t.notOk(places.includes(-1))
})
