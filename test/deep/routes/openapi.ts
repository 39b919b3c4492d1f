/** openapi - the served document: valid, complete, and true for the requests and answers of the routes. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import t from 'tap'
import { findRefusals } from '../../../schemas/document/openapi.ts'
import { ROUTES, type Route } from '../../../schemas/routes.ts'
import { type DocumentSchema, makeGenerator, withRules } from '../../support/clients/generate.ts'
import { type Called, startTestService } from '../../support/service/service.ts'

const SEED = Number(process.env.SEED ?? 11)
const BODIES = 8

const service = await startTestService({ BASE_URL: 'https://mail.example' })
const { account, testServer, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const served = await service.call('GET /v1/openapi.json')
const document = served.json
const operators = (await service.operate('GET /v1/operator/openapi.json')).json
const TOKENS: Readonly<Record<string, string>> = {
  serverKey: testServer.token,
  accountKey: account.token,
  operatorKey: operatorToken,
}

interface Operation {
  readonly method: string
  readonly path: string
  readonly operation: DocumentSchema
}

function operationsOf({ paths }: DocumentSchema): readonly Operation[] {
  return Object.entries<DocumentSchema>(paths).flatMap(([path, methods]) =>
    Object.entries<DocumentSchema>(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
}

const operations = operationsOf(document)

function resolve(ref: string): DocumentSchema {
  return ref
    .slice(2)
    .split('/')
    .reduce((node, name) => node[name], document)
}

const ajv = new Ajv2020({ strict: false, validateFormats: true })
addFormats.default(ajv)
ajv.addSchema({ ...document, $id: 'document' })
ajv.addSchema({ ...operators, $id: 'operators' })

/** Whether the document allows an answer. */
function allows({ path, method, operation }: Operation, { status, json, headers }: Called): boolean {
  const [media = ''] = (headers.get('content-type') ?? '').split(';')
  if (media === 'text/csv') return operation.responses[status].content[media] !== undefined
  const escaped = path.replaceAll('~', '~0').replaceAll('/', '~1')
  const at = `/paths/${escaped}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`
  const validate = ajv.getSchema(`document#${encodeURI(at)}`)
  if (validate === undefined) throw new Error(`${method} ${path} ${status} is not in the document`)
  return validate(json) as boolean
}

function call({ path, method, operation }: Operation, body?: unknown): Promise<Called> {
  const [scheme = ''] = Object.keys(operation.security[0] ?? {})
  const token = TOKENS[scheme]
  const at = path.replace(/\{\w+\}/g, '01a1f8d8-8300-7000-8000-0e7faee555a7')
  return service.call(`${method} ${at}`, { ...(token !== undefined && { token }), ...(body !== undefined && { body }) })
}

t.test('openapi: served without a key, and valid [openapi.document]', async (t) => {
  t.equal(served.status, 200)
  t.equal(served.headers.get('content-type'), 'application/json')
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document))
  t.ok(valid, JSON.stringify(errors))
  t.equal(validator.version, '3.1')
  t.same(document.servers, [{ url: 'https://mail.example' }])
  const broken = structuredClone(document)
  broken.paths['/v1/email'].post.responses = undefined
  broken.paths['/v1/email'].post.parameters[0].in = 'nowhere'
  t.notOk((await new Validator().validate(broken)).valid, 'the validator sees a fault')
})

for (const [listener, whole] of [
  ['public', document],
  ['operator', operators],
] as const)
  t.test(
    `openapi: every ${listener} route and no other, with its sentence, its key, its header and its refusals [openapi.document]`,
    async (t) => {
      t.ok((await new Validator().validate(structuredClone(whole))).valid)
      const told = operationsOf(whole)
      const shown = Object.values<Route>(ROUTES).filter((route) => route.listener === listener)
      t.same(
        told.map(({ method, path, operation }) => `${operation.operationId} ${method} ${path}`).sort(),
        shown.map(({ name, method, path }) => `${name} ${method} ${path}`).sort(),
      )
      const tags = whole.tags.map(({ name }: { name: string }) => name)
      t.ok(tags.length > 5 && told.every(({ operation }) => tags.includes(operation.tags[0])))
      t.ok(told.every(({ operation }) => /^[A-Z][^.]+ [^.]+$/.test(operation.summary)))
      for (const route of shown) {
        const { operation } = told.find((one) => one.operation.operationId === route.name) as Operation
        t.equal(operation.security.length, route.keys.length, route.name)
        const headers = operation.parameters.filter((one: { in: string }) => one.in === 'header')
        t.equal(headers.length, route.isIdempotent || route.takesLastEventId ? 1 : 0)
        t.equal(operation.requestBody !== undefined, route.body !== null)
        const refused = Object.entries<DocumentSchema>(operation.responses).flatMap(([status, { content }]) => {
          const schema = content?.['application/json']?.schema
          return Number(status) < 400 || schema === undefined ? [] : (schema.oneOf ?? [schema])
        })
        const shared = (ref: string) => whole.components.schemas[ref.slice(ref.lastIndexOf('/') + 1)]
        const codes = refused.map(({ $ref }: { $ref: string }) => shared($ref).properties.error.const).sort()
        t.same(
          codes,
          findRefusals(route)
            .map(({ code }) => code)
            .sort(),
          route.name,
        )
      }
      const text = JSON.stringify(whole)
      const isUsed = (name: string) => text.includes(`"#/components/schemas/${name}"`)
      t.same(
        Object.keys(whole.components.schemas).filter((name) => name !== 'Event' && !isUsed(name)),
        [],
      )
      t.ok(whole.tags.every(({ description }: { description?: string }) => /^[A-Z].+\.$/.test(description ?? '')))
      t.notMatch(text, /"oneOf":\[\{[^[\]{}]*\}\]/, 'no alternative of one')
    },
  )

t.test('openapi: every JSON body and answer has an example that its schema allows [openapi.document]', async (t) => {
  let examples = 0
  for (const [id, whole] of [
    ['document', document],
    ['operators', operators],
  ] as const)
    for (const { method, path, operation } of operationsOf(whole)) {
      const at = `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}`
      const media: [string, DocumentSchema][] = Object.entries<DocumentSchema>(operation.responses).map(
        ([status, { content }]) => [`/responses/${status}`, content?.['application/json']],
      )
      media.push(['/requestBody', operation.requestBody?.content['application/json']])
      for (const [place, json] of media.filter(([, found]) => found !== undefined)) {
        const validate = ajv.getSchema(`${id}#${encodeURI(`${at}${place}/content/application~1json/schema`)}`)
        const shown = json.examples === undefined ? [json.example] : Object.values<DocumentSchema>(json.examples)
        for (const one of shown) {
          examples += 1
          const value = json.examples === undefined ? one : one.value
          t.ok(
            validate?.(value),
            `${operation.operationId} ${place} ${JSON.stringify(value)?.slice(0, 400)} ${JSON.stringify(validate?.errors)}`,
          )
        }
      }
    }
  t.ok(examples > 300, String(examples))
})

t.test('openapi: the example of a send is sent [openapi.document]', async (t) => {
  for (const path of ['/v1/email', '/v1/email/batch']) {
    const { example } = document.paths[path].post.requestBody.content['application/json']
    t.equal((await service.call(`POST ${path}`, { token: testServer.token, body: example })).status, 200, path)
  }
})

t.test(
  `openapi: bodies generated from the document are accepted, and answers match it (seed ${SEED}) [openapi.document]`,
  async (t) => {
    const generate = makeGenerator(SEED, resolve)
    for (const at of operations.filter(({ operation }) => operation.requestBody !== undefined)) {
      const { schema } = at.operation.requestBody.content['application/json']
      const { required = [] } = schema.$ref === undefined ? schema : resolve(schema.$ref)
      for (let round = 0; round < BODIES; round += 1) {
        const body = withRules(generate(schema) as Record<string, unknown>)
        const called = await call(at, body)
        const what = `${at.operation.operationId} ${JSON.stringify(body).slice(0, 300)} -> ${called.text.slice(0, 300)}`
        t.ok(called.status !== 400 && called.status !== 415 && called.status < 500, what)
        t.ok(allows(at, called), what)
        const name = required[round % Math.max(1, required.length)]
        const wrong =
          name === undefined || round % 2 === 0 ? { ...body, unknownField: 1 } : { ...body, [name]: undefined }
        const refused = await call(at, wrong)
        t.equal(refused.status, 400, `${at.operation.operationId} ${JSON.stringify(wrong).slice(0, 300)}`)
        t.ok(allows(at, refused))
      }
    }
  },
)

t.test('openapi: answers of routes without a body match the document [openapi.document]', async (t) => {
  for (const at of operations.filter(
    ({ operation, method, path }) =>
      operation.requestBody === undefined && method !== 'DELETE' && !path.endsWith('/events'),
  )) {
    const called = await call(at)
    t.ok(called.status < 500 && allows(at, called), `${at.operation.operationId} ${called.text.slice(0, 200)}`)
  }
})

/** Requests as the document and the service must both read them: route, body, whether it is of the right form. */
const FORMS: readonly (readonly [route: string, body: object, isRight: boolean])[] = [
  ...['2026-01-31T23:59:59Z', '2024-02-29T12:00:00.5+01:00'].map(
    (at) => ['/v1/messages/search', { submittedFrom: at }, true] as const,
  ),
  ...[
    '2026-02-30T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-02-28T24:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-31',
  ].flatMap(
    (at) =>
      [
        ['/v1/messages/search', { submittedFrom: at }, false],
        ['/v1/messages/search', { submittedTo: at }, false],
        ['/v1/suppressions/search', { createdFrom: at }, false],
        ['/v1/suppressions/search', { createdTo: at }, false],
      ] as const,
  ),
  ['/v1/webhooks', { url: 'https://xn--bcher-kva.example/hook?a=1' }, true],
  ['/v1/webhooks', { url: 'https://acme.com:8443' }, true],
  ...['https://bücher.example/', 'https://acme.com/é', 'https://acme.com/?a[]=1', 'http://a.com/'].map(
    (url) => ['/v1/webhooks', { url }, false] as const,
  ),
]

t.test(
  'openapi: the document refuses what the service refuses [openapi.document, time.instant, webhook.url]',
  async (t) => {
    for (const [path, body, isRight] of FORMS) {
      const at = operations.find((one) => one.path === path && one.method === 'POST') as Operation
      const escaped = path.replaceAll('/', '~1')
      const validate = ajv.getSchema(
        `document#${encodeURI(`/paths/${escaped}/post/requestBody/content/application~1json/schema`)}`,
      )
      const what = JSON.stringify(body)
      t.equal(validate?.(body), isRight, `the document: ${what}`)
      const { status, json } = await call(at, body)
      t.equal(status === 400, !isRight, `the service: ${what} ${status}`)
      if (!isRight) t.equal(json.issues[0].path, Object.keys(body)[0])
    }
  },
)
