/** issues - the refusal of names that no string may hold, over a real listener. */

import t from 'tap'
import { ROUTES, type Route } from '../../../schemas/routes.ts'
import { call, makeKeyRing, makeRoutes, startEdge } from '../../support/service/edge-listener.ts'

const ring = makeKeyRing()
const TOKENS = { S: ring.sk, A: ring.ak, O: ring.ok }
const LONE = /\\u[dD][89abAB][0-9a-fA-F]{2}/
const SHOWN = '�'

/** JSON of a name as a client may write it, and how the path of its issue shows it. */
const NAMES: readonly (readonly [json: string, shown: string])[] = [
  ['\\ud800', SHOWN],
  ['\\udfff', SHOWN],
  ['a\\uD83Db', `a${SHOWN}b`],
  ['\\udc00\\ud800', SHOWN + SHOWN],
  ['\\ud83d\\ude00', '\u{1F600}'],
  // Cut after 1,000 characters, through a pair.
  [`${'x'.repeat(999)}\\ud83d\\ude00`, `${'x'.repeat(999)}${SHOWN}…`],
]

for (const listener of ['public', 'operator'] as const)
  t.test(`issues: no refusal of the ${listener} listener holds a lone surrogate [text.forbidden]`, async (t) => {
    const edge = await startEdge(ring, { routes: makeRoutes(listener) })
    t.teardown(() => edge.close())
    const taking = Object.values<Route>(ROUTES).filter(
      (route) => route.listener === listener && route.body !== null && !route.takesPieces,
    )
    for (const route of taking)
      for (const [json, shown] of NAMES) {
        const came = await call(edge.port, {
          method: route.method,
          path: route.path.replace(/\{\w+\}/g, '1'),
          token: TOKENS[route.keys[0] ?? 'S'],
          headers: { 'Content-Type': 'application/json' },
          body: `{"${json}": 1}`,
        })
        t.equal(came.status, 400, route.name)
        t.notMatch(came.text, LONE, `${route.name} ${json.slice(-20)}`)
        t.ok(
          came.json.issues.some(({ path }: { path: string }) => path === shown),
          `${route.name} ${json.slice(-20)}`,
        )
      }
    t.same(edge.faults, [])
  })

const MAPS: readonly (readonly [field: string, path: string])[] = [
  ['"metadata": {"\\ud800": "v"}', `metadata.${SHOWN}`],
  ['"metadata": {"k": "\\ud800"}', 'metadata.k'],
  ['"headers": {"X-\\udc00": "v"}', `headers.X-${SHOWN}`],
  ['"from": {"email": "a@example.com", "\\ud800": 1}', `from.${SHOWN}`],
  ['"attachments": [{"name": "\\ud800", "content": ""}]', 'attachments.0.name'],
]

t.test('issues: names within the fields of a message [text.forbidden]', async (t) => {
  const edge = await startEdge(ring, { routes: makeRoutes('public') })
  t.teardown(() => edge.close())
  for (const [field, path] of MAPS) {
    const came = await call(edge.port, {
      method: 'POST',
      path: '/v1/email',
      token: ring.sk,
      headers: { 'Content-Type': 'application/json' },
      body: `{"from": "a@example.com", "to": ["b@example.com"], "subject": "S", "text": "T", ${field}}`,
    })
    t.equal(came.status, 400, field)
    t.notMatch(came.text, LONE, field)
    t.same(
      came.json.issues.map((issue: { path: string }) => issue.path),
      [path],
      field,
    )
  }
  for (const name of ['%ED%A0%80', '%ed%b0%80', '%FF']) {
    const came = await call(edge.port, { path: `/v1/streams?${name}=1`, token: ring.sk })
    t.equal(came.status, 400, name)
    t.notMatch(came.text, LONE, name)
  }
})
