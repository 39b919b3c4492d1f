/**
 * check-links - links against real servers: what answers, what is broken, what hangs, what is never requested; hostile
 * links reach nothing private.
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTls } from 'node:https'
import { type AddressInfo, createServer as createPlain, type Socket } from 'node:net'
import t from 'tap'
import { type LinkCheckDeps, makeLinkChecker } from '../../src/checks/check-links.ts'
import { hasToken } from '../../src/checks/link-rules.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { findSuite } from '../support/machine/suites.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'
import { startZone } from '../support/peers/zone.ts'

const nowMs = () => performance.now()
const zone = await startZone()
const requests: string[] = []
let open = 0
let most = 0
const server = createServer((request, response) => {
  requests.push(`${request.method} ${request.url}`)
  seen = request
  open += 1
  most = Math.max(most, open)
  response.on('close', () => {
    open -= 1
  })
  const url = new URL(request.url ?? '/', 'http://x')
  const to = url.searchParams.get('to')
  if (to !== null) response.writeHead(302, { Location: Buffer.from(to).toString('latin1'), 'Set-Cookie': 'a=b' }).end()
  else if (url.pathname === '/get-only')
    response.writeHead(request.method === 'GET' ? 200 : 405).end('x'.repeat(1_000_000))
  else if (url.pathname === '/slow') setTimeout(() => response.end(), 80)
  else if (url.pathname.startsWith('/status/')) response.writeHead(Number(url.pathname.slice(8))).end()
  else if (url.pathname !== '/hang') response.end()
})
let seen: IncomingMessage | null = null
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
/** Would see a connection to an address that is not allowed. */
let reached = 0
const inside = createPlain((socket: Socket) => {
  reached += 1
  socket.destroy()
})
await new Promise<void>((resolve) => inside.listen(port, '127.0.0.2', resolve))
t.teardown(async () => {
  server.closeAllConnections()
  server.close()
  inside.close()
  await zone.close()
})
zone.set('web.test', { type: 'A', address: '127.0.0.1' })
zone.set('inside.test', { type: 'A', address: '127.0.0.2' })

const resolver = createResolver({ servers: [zone.server], nowMs })
function makeChecker(changes: Partial<LinkCheckDeps> = {}) {
  const allowed = { privateNetworksAllowed: ['127.0.0.1/32'], ports: ['', String(port)] }
  return makeLinkChecker({
    resolver,
    ca: null,
    baseUrl: 'https://mail.acme.example',
    nowMs,
    requestMsMax: 400,
    ...allowed,
    ...changes,
  })
}
async function check(
  hrefs: readonly string[],
  changes: Partial<LinkCheckDeps> = {},
  unsubscribes: readonly string[] = [],
) {
  const order = { accountId: 'a', hrefs, unsubscribes: new Set(unsubscribes) }
  const results = await makeChecker(changes).check(order)
  return (results ?? []).map(({ result, status, reason }) =>
    [result, status, reason].filter((one) => one !== null).join(' '),
  )
}
const web = (path: string) => `http://web.test:${port}${path}`

t.test('links: what answers, what is broken, and what does not answer in time [message.checks]', async (t) => {
  const hrefs = ['/', '/get-only', '/status/404', '/status/503', '/hang', '/status/204'].map(web)
  t.same(await check(hrefs), ['ok 200', 'ok 200', 'broken 404', 'broken 503', 'timeout', 'ok 204'])
  t.ok(requests.includes('HEAD /get-only') && requests.includes('GET /get-only'))
  t.notOk(requests.includes('GET /'), 'GET only where HEAD does not answer well')
  t.same(await check(['http://nowhere.test/', `http://web.test:${port}`], { ports: ['', String(port)] }), [
    'broken dns_error',
    'ok 200',
  ])
})

t.test('links: three redirects are followed, and each hop is checked [message.checks]', async (t) => {
  const chain = (length: number, last: string) => {
    let to = last
    for (let at = 0; at < length; at += 1) to = web(`/?to=${encodeURIComponent(to)}`)
    return to
  }
  const token = web('/reset/k3J9xQ2mZ8vT5bN1cR7wL0')
  const ends = [
    chain(3, web('/')),
    chain(4, web('/')),
    chain(1, `http://inside.test:${port}/`),
    chain(1, token),
    chain(1, 'ftp://x/'),
  ]
  const results = [
    'ok 200',
    'broken 302 redirects',
    'not_checked private_address',
    'not_checked token',
    'not_checked not_web',
  ]
  t.same(await check(ends), results)
  t.equal(reached, 0)
  t.equal(seen?.headers.cookie, undefined, 'cookies are not kept')
  t.notOk(requests.some((one) => one.includes('/reset/') && !one.includes('?to=')))
})

t.test('links: what could do something is never requested [message.checks]', async (t) => {
  const before = requests.length
  const list = web('/leave')
  const hrefs = [
    web('/reset?token=3f9a8c7b6d5e4f3a2b1c'),
    web('/verify/01a1f8d8-8300-7000-8000-0e7faee555a7'),
    `http://user:pass@web.test:${port}/`,
    'http://web.test:22/',
    'https://mail.acme.example/u/abc',
    list,
    'mailto:ada@acme.example',
    'javascript:alert(1)',
    'http://',
  ]
  const reasons = [
    'token',
    'token',
    'credentials',
    'port_not_allowed',
    'unsubscribe',
    'unsubscribe',
    'not_web',
    'not_web',
    'not_web',
  ]
  t.same(
    await check(hrefs, {}, [list]),
    reasons.map((reason) => `not_checked ${reason}`),
  )
  t.equal(requests.length, before)
})

t.test('links: a token is told from the words of a title [message.checks]', async (t) => {
  const of = (path: string) => hasToken(new URL(path, 'http://a.example'))
  for (const path of [
    '/docs/how-to-reset-your-password',
    '/a/b/c/d/e/f/g/h/i/j/k',
    '/blog/getting-started-with-mail',
    '/?q=1&p=2',
  ])
    t.notOk(of(path), path)
  for (const path of [
    '/r/aB3dE5fG7hJ9kL1mN3pQ',
    '/?t=aaaaaaaaaaaaaaaaaaaa',
    '/x/%61B3dE5fG7hJ9kL1mN3pQ',
    '/?jwt=eyJhbGciOi.eyJzdWIiOiI',
  ])
    t.ok(of(path), path)
})

t.test('links: bounds of a message, a host, an account and all together [message.checks]', async (t) => {
  most = 0
  const many = Array.from({ length: 35 }, (_, n) => web(`/slow?n=${n}`))
  const results = await check(many, { requestMsMax: 5_000 })
  t.equal(results.filter((one) => one === 'ok 200').length, 30)
  t.same(
    results.slice(30),
    Array.from({ length: 5 }, () => 'not_checked limit'),
  )
  t.ok(most <= 2, `${most} at once to a host`)
  let minutes = 0
  const clock = performance.now()
  const nowMs = () => clock + minutes * 60_000
  const checker = makeChecker({ requestMsMax: 5_000, nowMs })
  const order = (accountId: string) => ({ accountId, hrefs: many, unsubscribes: new Set<string>() })
  const [first, second] = await Promise.all([checker.check(order('a')), checker.check(order('a'))])
  t.equal(second, null, 'one check of an account at a time')
  t.equal(first?.filter(({ result }) => result === 'ok').length, 30)
  const next = [await checker.check(order('a')), await checker.check(order('a'))].flatMap((one) => one ?? [])
  t.ok(next.some(({ reason }) => reason === 'rate'))
  t.equal(next.filter(({ result }) => result === 'ok').length, 30, '60 requests a minute')
  minutes = 0.99
  t.equal((await checker.check(order('a')))?.filter(({ result }) => result === 'ok').length, 0)
  minutes = 1.01
  t.equal((await checker.check(order('a')))?.filter(({ result }) => result === 'ok').length, 30)
})

t.test('links: over TLS, to the name that the link has [message.checks]', async (t) => {
  const pair = makeSelfSigned(2, ['web.test'])
  if (pair === null) return t.comment('openssl is not installed: skipped')
  const tls = createTls(pair, (_, response) => response.end())
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve))
  const at = (tls.address() as AddressInfo).port
  zone.set('other.test', { type: 'A', address: '127.0.0.1' })
  const hrefs = [`https://web.test:${at}/`, `https://other.test:${at}/`]
  const ports = [String(at)]
  t.same(await check(hrefs, { ca: pair.cert, ports }), ['ok 200', 'broken ERR_TLS_CERT_ALTNAME_INVALID'])
  t.match(await check(hrefs, { ports }), [/broken .*SELF_SIGNED/, /broken .*SELF_SIGNED/])
  tls.close()
})

t.test('links: hostile links reach nothing private [message.checks] [webhook.private]', async (t) => {
  const file = findSuite('ssrf/vectors.json')
  if (file === null) return t.comment('SUITES_DIR is not there: skipped')
  const vectors = JSON.parse(readFileSync(file, 'utf8')) as readonly { kind: string; value: string; blocked: boolean }[]
  const before = requests.length
  const hrefs = vectors
    .filter(({ blocked }) => blocked)
    .flatMap(({ kind, value }) => {
      const host = value.includes(':') && !value.startsWith('[') ? `[${value}]` : value
      // Also to the port of a server that would see the connection.
      return kind === 'url' ? [value] : [`http://${host}/`, `http://${host}:${port}/`]
    })
  const direct: string[] = []
  for (const href of hrefs) direct.push(...(await check([href], { privateNetworksAllowed: [], requestMsMax: 3_000 })))
  const redirected: string[] = []
  for (const href of hrefs)
    redirected.push(...(await check([web(`/?to=${encodeURIComponent(href)}`)], { requestMsMax: 3_000 })))
  t.ok(hrefs.length > 266, `${hrefs.length} links`)
  const harmless = /^not_checked (?:private_address|not_web|credentials|port_not_allowed|token)$|^broken dns_error$/
  for (const [at, result] of direct.entries()) t.match(result, harmless, hrefs[at] ?? '')
  t.equal(reached, 0)
  // The address that is allowed here is the only one that may answer.
  const isOwn = (href: string) => /^(?:127\.0\.0\.1|\[::ffff:7f00:1\]|(?:.+\.)?localhost)$/.test(new URL(href).hostname)
  for (const [at, result] of redirected.entries())
    if (!harmless.test(result)) t.ok(isOwn(hrefs[at] ?? ''), `${hrefs[at]}: ${result}`)
  t.ok(requests.length > before)
})
