/**
 * Fuzz of the whole service over HTTP: bodies from the schemas of the routes, broken texts and bytes, odd paths. No
 * 5xx, no crash, no refusal that the contract does not know, no memory that stays. FUZZ_RUNS sets how many bodies.
 */
import fc from 'fast-check'
import t from 'tap'
import { EMAIL_BODY } from '../../schemas/email.ts'
import { ROUTES, type Route } from '../../schemas/routes.ts'
import { type BodySchema, bytesOf } from '../support/crash-bodies.ts'
import { agent, residentMb, send, wrongOf } from '../support/crash-http.ts'
import { setScene } from '../support/crash-scene.ts'
import { startHost } from '../support/host.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 3_000)
const AT_ONCE = 8
const GROWTH_MB_MAX = 150
/** A head of so many bytes is taken; a longer one may be refused. */
const HEAD_BYTES_SURE = 3_500
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)

t.setTimeout(120_000)
t.jobs = 1
const { settings, firstRun, end } = await setScene()
const host = await startHost(settings)
t.teardown(async () => {
  agent.destroy()
  await host.kill('SIGKILL')
  await end()
})
const PORTS = { public: Number(settings.HTTP_PORT), operator: Number(settings.OPERATOR_PORT) }
const TOKENS = { S: firstRun.testServer.token, A: firstRun.account.token, O: firstRun.operatorToken }

/** Bodies that a test server may send as they are: from the simulator's domain, on no stream by name. */
const { streamId: _, ...named } = EMAIL_BODY.properties
const SENDABLE: BodySchema = { ...EMAIL_BODY, properties: { ...named, from: { type: 'string', format: 'simulator' } } }

// The account's own limits last: from then on mail is refused.
for (const route of [ROUTES.sendEmail, ROUTES.addDomain, ROUTES.patchAccount] as readonly Route[]) {
  // A domain that is added costs a pair of keys.
  const runs = route === ROUTES.sendEmail ? RUNS : Math.ceil(RUNS / (route === ROUTES.addDomain ? 100 : 10))
  t.test(`fuzz: ${runs} bodies on ${route.name} [fuzz.bodies]`, async (t) => {
    t.comment(`SEED=${SEED}`)
    const before = residentMb(host.pid)
    const statuses = new Map<number, number>()
    const near = bytesOf(route.body as BodySchema)
    const body = route === ROUTES.sendEmail ? fc.oneof(near, bytesOf(SENDABLE), bytesOf(SENDABLE)) : near
    const bodies = fc.sample(body, { numRuns: runs, seed: SEED })
    const wrong: string[] = []
    const client = async (): Promise<void> => {
      for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
        const came = await send({
          port: PORTS[route.listener],
          method: route.method,
          path: route.path.replace('{accountId}', firstRun.account.accountId),
          headers: {
            authorization: `Bearer ${TOKENS[route.keys[0] ?? 'S']}`,
            'content-type': 'application/json',
            ...(bodies.length % 10 === 0 && { 'idempotency-key': `key ${bodies.length % 50}` }),
          },
          body,
        })
        statuses.set(came.status, (statuses.get(came.status) ?? 0) + 1)
        const fault = wrongOf(came)
        if (fault !== null) wrong.push(`${fault} for ${body.toString('latin1').slice(0, 500)}`)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
    t.comment(JSON.stringify({ statuses: Object.fromEntries(statuses), before, after: residentMb(host.pid) }))
    t.same(wrong.slice(0, 5), [], 'every answer is one of the contract')
    t.ok(host.isRunning())
    t.ok((statuses.get(route.success.status) ?? 0) > runs / 50, 'some are taken')
    t.ok((statuses.get(400) ?? 0) > runs / 50, 'some are not')
    t.ok(residentMb(host.pid) - before < GROWTH_MB_MAX, 'memory stays bounded')
  })
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
  for (const { path, query, method, ...rest } of fc.sample(asked, { numRuns: Math.ceil(RUNS / 3), seed: SEED })) {
    const headers = { authorization: `Bearer ${rest.token}`, 'content-type': rest.type, 'idempotency-key': rest.key }
    const target = query === '' ? path : `${path}?${query}`
    const shown = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, latin1(value)]))
    const asked = { port: PORTS.public, method, path: target, headers: shown, body: '{}' }
    const isLong = target.length + JSON.stringify(shown).length > HEAD_BYTES_SURE
    const fault = await send(asked).then(
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
