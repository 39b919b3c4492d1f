/**
 * Fuzz of the whole service over HTTP: bodies from the schemas of every route that writes or searches, broken texts and
 * bytes, odd paths. No 5xx, no crash, no refusal that the contract does not know, no memory that stays. FUZZ_RUNS sets
 * how many bodies of mail; each other route gets a tenth: `FUZZ_RUNS=2400` makes 10,000 in all.
 */
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { ROUTES, type Route } from '../../../schemas/routes.ts'
import { type BodySchema, bytesOf } from '../../support/clients/crash-bodies.ts'
import { agent, type Came, residentMb, sendAgain, wrongOf } from '../../support/clients/crash-http.ts'
import { startScene } from '../../support/service/crash-scene.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 2_400)
const AT_ONCE = 8
const GROWTH_MB_MAX = 150
/** A head of so many bytes is taken; a longer one may be refused. */
const HEAD_BYTES_SURE = 3_500
/**
 * Generating samples blocks the loop. Kept connections that the service ended meanwhile are detected within this time.
 */
const NOTICE_MS = 50
const SEED = Number(process.env.SEED ?? 1)
const UNKNOWN_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'

t.jobs = 1
const { settings, firstRun, host, end } = await startScene({ APPROVAL: 'manual' })
t.teardown(async () => {
  agent.destroy()
  await host.kill('SIGKILL')
  await end()
})
const PORTS = { public: Number(settings.HTTP_PORT), operator: Number(settings.OPERATOR_PORT) }
const TOKENS = { S: firstRun.testServer.token, A: firstRun.account.token, O: firstRun.operatorToken }

/** Routes that take a body. Orders that end objects come last, because others still use these. */
const LAST = ['addDomain', 'createWebhook', 'patchAccount', 'pauseAccount', 'closeAccount']
const ROUTES_WITH_BODY: readonly Route[] = Object.values<Route>(ROUTES)
  .filter(({ body, method }) => body !== null && method !== 'DELETE')
  .sort((a, b) => LAST.indexOf(a.name) - LAST.indexOf(b.name))
/** Each of these orders costs a key pair. */
const COSTLY = ['addDomain']

/** Fields that no generated value fits: a time must be a little ahead, an unsubscribe URL needs its own header. */
const UNFIT = ['sendAt', 'unsubscribe']

type Ids = Readonly<Record<string, string>>

/** Objects for paths and bodies of each listener: an account next to the first one, and the objects of its keys. */
const IDS: Readonly<Record<Route['listener'], Ids>> = await makeIds()

async function makeIds(): Promise<Record<Route['listener'], Ids>> {
  const make = async (route: Route, ids: Ids, body: object) => {
    const came = await ask(route, ids, Buffer.from(JSON.stringify(body)))
    if (came.status !== 201) throw new Error(`${route.name}: ${came.text}`)
    return JSON.parse(came.text)
  }
  const { accountId } = await make(ROUTES.createAccount, {}, { name: 'Fuzzed', administrators: [] })
  const server = { name: 'Fuzzed', mode: 'live' }
  const { serverId } = await make(ROUTES.createServer, {}, server)
  const operated = await make(ROUTES.createServerAsOperator, { accountId }, server)
  const { streamId } = await make(ROUTES.createStream, {}, { name: 'Fuzzed', kind: 'broadcast' })
  const { webhookId } = await make(ROUTES.createWebhook, {}, { url: 'https://hooks.example/fuzzed' })
  return {
    public: { serverId, streamId, id: streamId, webhookId },
    operator: { accountId, serverId: operated.serverId, streamId },
  }
}

/**
 * The schema with existing objects in place of its ids, a sender that a test server may use, and an index that every
 * list has.
 */
function known(schema: BodySchema, ids: Ids): BodySchema {
  const { properties, items } = schema
  const meant = Object.entries(properties ?? {}).filter(([name]) => !UNFIT.includes(name))
  const named = meant.map(([name, one]): [string, BodySchema] => {
    if (name === 'from' && one.then !== undefined) return [name, { type: 'string', format: 'simulator' }]
    if (name === 'index') return [name, { const: 0 }]
    return [name, ids[name] === undefined ? known(one, ids) : { enum: [ids[name]] }]
  })
  return {
    ...schema,
    ...(properties !== undefined && { properties: Object.fromEntries(named) }),
    ...(items !== undefined && { items: known(items, ids) }),
  }
}

function ask(route: Route, ids: Ids, body: Buffer, more: object = {}): Promise<Came> {
  return sendAgain({
    port: PORTS[route.listener],
    method: route.method,
    path: route.path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? UNKNOWN_ID),
    headers: {
      authorization: `Bearer ${TOKENS[route.keys[0] ?? 'S']}`,
      'content-type': 'application/json',
      ...more,
    },
    body,
  })
}

function runsOf({ name }: Route): number {
  if (name === 'sendEmail') return RUNS
  return Math.ceil(RUNS / (COSTLY.includes(name) ? 100 : 10))
}

for (const route of ROUTES_WITH_BODY) {
  const runs = runsOf(route)
  t.test(`fuzz: ${runs} bodies on ${route.name} [fuzz.bodies]`, async (t) => {
    t.comment(`SEED=${SEED}`)
    const before = residentMb(host.pid)
    const statuses = new Map<number, number>()
    const ids = IDS[route.listener]
    const near = bytesOf(route.body as BodySchema)
    const whole = bytesOf(known(route.body as BodySchema, ids))
    const body = fc.oneof(near, whole, whole)
    const bodies = fc.sample(body, { numRuns: runs, seed: SEED })
    await pause(NOTICE_MS)
    const wrong: string[] = []
    const client = async (): Promise<void> => {
      for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
        const keyed = bodies.length % 10 === 0 ? { 'idempotency-key': `key ${bodies.length % 50}` } : {}
        const came = await ask(route, ids, body, keyed)
        statuses.set(came.status, (statuses.get(came.status) ?? 0) + 1)
        const fault = wrongOf(came)
        if (fault !== null) wrong.push(`${fault} for ${body.toString('latin1').slice(0, 500)}`)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
    t.comment(JSON.stringify({ statuses: Object.fromEntries(statuses), before, after: residentMb(host.pid) }))
    t.same(wrong.slice(0, 5), [], 'every answer is one of the contract')
    t.ok(host.isRunning())
    const invalid = statuses.get(400) ?? 0
    t.ok(runs - invalid > runs / 50, 'some are whole')
    t.ok(invalid > runs / 50, 'some are not')
    if (isReached(route)) t.ok((statuses.get(route.success.status) ?? 0) > 0, 'some are taken')
    t.ok(residentMb(host.pid) - before < GROWTH_MB_MAX, 'memory stays bounded')
  })
}

/**
 * Whether the objects of a route's path exist, so that a whole body is carried out, and no token or time to send has to
 * be guessed.
 */
function isReached({ name, path, listener }: Route): boolean {
  if (['useDeskLink', 'patchMessage', 'checkMessage'].includes(name)) return false
  return [...path.matchAll(/\{(\w+)\}/g)].every(([, name = '']) => name in IDS[listener])
}

t.test(`fuzz: ${RUNS / 3} requests with odd paths, methods and headers [fuzz.requests]`, async (t) => {
  const token = fc.oneof(
    fc.constantFrom(...Object.values(TOKENS), '', 'sk_', 'sk_test_x', `sk_${'0'.repeat(5000)}`),
    fc.string({ unit: fc.constantFrom(...'skat_0Zé~ '), maxLength: 60 }),
  )
  const segment = fc.oneof(
    fc.constantFrom('v1', 'email', 'messages', 'domains', 'server', 'verify', '..', '.', '', '%00', '%ff', '%2f', 'x'),
    fc.uuid(),
    fc.webPath(),
    fc.nat(6000).map((length) => 'p'.repeat(length)),
  )
  const asked = fc.record({
    method: fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS'),
    path: fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join('/')}`),
    query: fc.oneof(fc.constant(''), fc.webQueryParameters(), fc.constantFrom('limit=1&limit=2', 'after=%zz', 'limit')),
    token,
    type: fc.constantFrom(
      'application/json',
      'application/json; charset=utf-8',
      'text/plain',
      '',
      ';',
      'x'.repeat(3000),
    ),
    key: fc.oneof(
      fc.constant('k'),
      fc.nat(300).map((length) => 'k'.repeat(length)),
      fc.constantFrom('', 'a\tb', 'é'),
    ),
  })
  const wrong: string[] = []
  const samples = fc.sample(asked, { numRuns: Math.ceil(RUNS / 3), seed: SEED })
  await pause(NOTICE_MS)
  for (const { path, query, method, ...rest } of samples) {
    const headers = { authorization: `Bearer ${rest.token}`, 'content-type': rest.type, 'idempotency-key': rest.key }
    const target = query === '' ? path : `${path}?${query}`
    const shown = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, latin1(value)]))
    const asked = { port: PORTS.public, method, path: target, headers: shown, body: '{}' }
    const isLong = target.length + JSON.stringify(shown).length > HEAD_BYTES_SURE
    const fault = await sendAgain(asked).then(
      (came) => (isLong && came.status === 431 ? null : method === 'HEAD' ? wrongHead(came.status) : wrongOf(came)),
      // The library that reads the head may close before its refusal of a long one has arrived.
      (error: Error) => (isLong ? null : error.message),
    )
    if (fault !== null)
      wrong.push(`${fault} for ${method} ${target.slice(0, 200)} ${JSON.stringify(shown).slice(0, 300)}`)
  }
  t.same(wrong.slice(0, 5), [], 'every answer is one of the contract')
  t.ok(host.isRunning())
})

function wrongHead(status: number): string | null {
  return status < 500 ? null : `status ${status}`
}

/** As it goes over the wire. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
