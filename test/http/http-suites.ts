/**
 * Tests of the listener with the vectors of other projects: JSON texts on every route that takes a body, raw requests.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { type Test, test } from 'tap'

import { ERROR } from '../../schemas/error.ts'
import { ROUTES, type Route } from '../../schemas/routes.ts'
import { makeContentCheck, readContent } from '../../src/http/body.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { findSuite } from '../support/machine/suites.ts'
import { call, makeKeyRing, makeRoutes, sendRaw, startEdge } from '../support/service/edge-listener.ts'

const ring = makeKeyRing()
const isError = compileBody(ERROR)
const TOKENS = { S: ring.sk, A: ring.ak, O: ring.ok }
/** The only vector that is a whole body, of routes whose every field may be left out. */
const EMPTY_OBJECT = 'y_object_empty.json'

const JSON_SUITE = findSuite('json/JSONTestSuite/test_parsing')
const HTTP_SUITE = findSuite('http/llhttp.json')

function allMayBeLeftOut(body: object | null): boolean {
  const { required, anyOf } = (body ?? {}) as { required?: readonly string[]; anyOf?: object }
  return (required === undefined || required.length === 0) && anyOf === undefined
}

function skipWithout(path: string | null): string | false {
  return path === null ? 'vectors not found: set SUITES_DIR' : false
}

/** The answer to a vector on a route: the status and the body. */
type Asked = (bytes: Buffer) => Promise<{ readonly status: number; readonly json: unknown }>

const TAKING: readonly Route[] = Object.values<Route>(ROUTES).filter(({ body }) => body !== null)
const OVER_HTTP = [ROUTES.sendEmail, ROUTES.patchAccount].map(({ name }) => name as string)

/** Over a separate listener. */
async function askOverHttp(t: Test, route: Route): Promise<Asked> {
  const edge = await startEdge(ring, { routes: makeRoutes(route.listener) })
  t.teardown(() => edge.close())
  return async (body) => {
    const came = await call(edge.port, {
      method: route.method,
      path: route.path.replace(/\{\w+\}/, '1'),
      token: TOKENS[route.keys[0] ?? 'S'],
      headers: { 'Content-Type': 'application/json' },
      body,
    })
    t.same(edge.faults, [])
    return came
  }
}

/** By the reader of the bodies. The rest is the same for all routes. */
function askDirectly(route: Route): Asked {
  const check = makeContentCheck(route)
  return async (bytes) => {
    const read = readContent(check, bytes, '')
    return 'refusal' in read
      ? { status: read.refusal.status, json: read.refusal.json }
      : { status: route.success.status, json: {} }
  }
}

for (const route of TAKING) {
  test(`http: JSON vectors on ${route.name} [request.json]`, { skip: skipWithout(JSON_SUITE) }, async (t) => {
    const ask = OVER_HTTP.includes(route.name) ? await askOverHttp(t, route) : askDirectly(route)
    const wrong: string[] = []
    const names = readdirSync(JSON_SUITE ?? '').filter((name) => name.endsWith('.json'))
    for (const name of names) {
      const came = await ask(readFileSync(join(JSON_SUITE ?? '', name)))
      const { issues = [] } = came.json as { issues?: readonly { path: string }[] }
      const isRefused = came.status === 400 && isError(came.json, false).ok && issues.length > 0
      // An empty object is a complete body if nothing is required. No other vector is.
      const isTaken = came.status === route.success.status && name === EMPTY_OBJECT && allMayBeLeftOut(route.body)
      if (!isRefused && !isTaken) wrong.push(`${name}: ${came.status}`)
      if (name.startsWith('n_') && issues[0]?.path !== '') wrong.push(`${name}: not refused as a whole`)
    }
    t.equal(names.length, 318)
    t.same(wrong, [])
  })
}

interface RawCase {
  readonly name: string
  readonly input: string
}

test('http: raw requests do not harm the listener [request.raw]', { skip: skipWithout(HTTP_SUITE) }, async (t) => {
  const { cases } = JSON.parse(readFileSync(HTTP_SUITE ?? '', 'utf8')) as { cases: RawCase[] }
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  for (let at = 0; at < cases.length; at += 20) {
    const batch = cases.slice(at, at + 20)
    await Promise.all(
      batch.map(({ input }) => sendRaw(edge.port, Buffer.from(input, 'latin1'), (text) => text !== '', 300)),
    )
    t.equal((await call(edge.port, { path: '/v1/server', token: ring.sk })).status, 200, `after ${at + batch.length}`)
  }
  t.same(edge.faults, [])
})
