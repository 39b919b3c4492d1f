/**
 * refusal-order - each route that writes or searches gets a request with every fault, which is then repaired one fault
 * at a time. The codes follow the order of the table on every route.
 */

import t from 'tap'
import { makeOpenapi } from '../../schemas/document/openapi.ts'
import { REFUSALS } from '../../schemas/refusals.ts'
import { isLook } from '../../schemas/route.ts'
import { ROUTES, type Route } from '../../schemas/routes.ts'
import { makeKey } from '../../src/http/key.ts'
import { type DocumentSchema, makeGenerator, withRules } from '../support/clients/generate.ts'
import { type Called, type CallOptions, startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { account, testServer, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const ASKED = Object.values<Route>(ROUTES).filter(({ method }) => method !== 'GET')
const ORDER = REFUSALS.map(({ code }) => code as string)
const UNKNOWN_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'
/** Every route as if it were public, because the document describes complete bodies. */
const DOCUMENT: DocumentSchema = makeOpenapi(
  ASKED.map((route) => ({ ...route, listener: 'public' })),
  '',
)
const generate = makeGenerator(3, (ref) => DOCUMENT.components.schemas[ref.slice(ref.lastIndexOf('/') + 1)])

interface Keys {
  readonly S: string
  readonly A: string
  readonly O: string
}

const open: Keys = { S: testServer.token, A: account.token, O: operatorToken }

/** The keys of an account that was closed. */
async function closeAnAccount(): Promise<Keys> {
  const operate = (what: string, body: object = {}) =>
    service.operate(what.replace(' ', ' /v1/operator'), { token: operatorToken, body })
  const { accountId } = (await operate('POST /accounts', { name: 'Closed', administrators: [] })).json
  const { key } = (await operate(`POST /accounts/${accountId}/servers`, { name: 'Test', mode: 'test' })).json
  const { token } = (await operate(`POST /accounts/${accountId}/tokens`, { name: 'Key' })).json
  await operate(`POST /accounts/${accountId}/close`)
  return { S: key.token, A: token, O: operatorToken }
}

const closed = await closeAnAccount()

/** One repair: the request from here on, and the code of its answer. */
interface Step {
  readonly code: string
  readonly repaired: CallOptions & { readonly query?: string }
  /** Whether the answer lists issues. */
  readonly issues?: boolean
}

/** Faults in the order of their codes. Each step still has all later ones in the request. */
function stepsOf(route: Route): Step[] {
  const [kind = 'S'] = route.keys
  const isOperators = route.listener === 'operator'
  const other = isOperators ? open.S : kind === 'S' ? open.A : open.S
  const hasBody = route.body !== null
  const wrong = { 'content-type': 'text/plain', 'idempotency-key': '' }
  const broken: Step['repaired'] = { query: '?nothing=1', headers: wrong, body: '{' }
  const json = { 'idempotency-key': '' }
  const late = { query: '?nothing=1', ...(hasBody && { body: '{' }) }
  const operation = DOCUMENT.paths[route.path][route.method.toLowerCase()]
  const made = (hasBody ? generate(operation.requestBody.content['application/json'].schema) : undefined) as
    | Record<string, unknown>
    | undefined
  const body = made === undefined ? undefined : withRules(made)
  const whole = body === undefined ? {} : { body }
  const unknown = { ...broken, token: makeKey(isOperators ? 'ok' : 'sk', 0).token }
  // A route without a key looks at none.
  const keyless = route.keys.length === 0
  const steps: Step[] = keyless ? [] : [broken, unknown].map((repaired) => ({ code: 'unauthorized', repaired }))
  const wrongKind = isOperators ? 'unauthorized' : 'wrong_token_kind'
  // A route that takes both kinds refuses neither.
  if (route.keys.length === 1) steps.push({ code: wrongKind, repaired: { ...broken, token: other } })
  const token = closed[kind]
  if (hasBody) steps.push({ code: 'unsupported_media_type', repaired: { ...broken, token } })
  if (route.isIdempotent)
    steps.push({ code: 'invalid_request', repaired: { ...late, token, headers: json }, issues: false })
  steps.push({ code: 'invalid_request', repaired: { ...late, token }, issues: true })
  steps.push({ code: 'invalid_request', repaired: { ...whole, query: '?nothing=1', token }, issues: true })
  if (!isLook(route) && !isOperators) steps.push({ code: 'account_not_active', repaired: { ...whole, token } })
  if (route.path.includes('{')) steps.push({ code: 'not_found', repaired: { ...whole, token: open[kind] } })
  return steps
}

function call(route: Route, { query = '', ...options }: Step['repaired']): Promise<Called> {
  const what = `${route.method} ${route.path.replace(/\{\w+\}/g, UNKNOWN_ID)}${query}`
  return route.listener === 'operator' ? service.operate(what, options) : service.call(what, options)
}

for (const route of ASKED) {
  t.test(`refusals: ${route.name} [refusal.order]`, async (t) => {
    let before = 0
    for (const [index, { code, repaired, issues }] of stepsOf(route).entries()) {
      const called = await call(route, repaired)
      const place = ORDER.indexOf(called.json?.error)
      t.equal(called.json?.error, code, `step ${index}: ${called.text.slice(0, 300)}`)
      t.equal(called.status, REFUSALS[place]?.status)
      t.ok(place >= before, 'no later code comes first')
      if (issues !== undefined) t.equal('issues' in called.json, issues)
      before = place
    }
  })
}
