/**
 * Requests whose end another server on the way may see elsewhere, on both engines: each disguise of Transfer-Encoding
 * that smuggler has, with a body that ends later by its chunks, and one that ends later by its length.
 */

import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { findSuite } from '../../../support/machine/suites.ts'
import { makeKeyRing, makeRoutes, sendRaw, startEdge } from '../../../support/service/edge-listener.ts'
import { ENGINES, readAnswer } from '../../../support/service/engines.ts'

const SUITE = findSuite('http/smuggler.json')
const ring = makeKeyRing()
const KEY = `Authorization: Bearer ${ring.sk}`
const BODY = JSON.stringify({ from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' })
const CHUNK = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`
const HIDDEN = `GET /v1/messages/hidden HTTP/1.1\r\nHost: a\r\n${KEY}\r\n\r\n`
const AT_ONCE = 40
const QUIET_MS = 150

/** A strict reader sees this field. Whatever its value, the length next to it must not count. */
const IS_CODED = /(?:^|\n)transfer-encoding:/i

interface Probe {
  readonly name: string
  readonly head: string
  /** Ends with its chunks before the hidden request, and with its length behind that. */
  readonly isLengthLonger: boolean
}

function probesOf(path: string): Probe[] {
  const { mutations } = JSON.parse(readFileSync(path, 'utf8')) as { mutations: Readonly<Record<string, string>> }
  return Object.entries(mutations).flatMap(([name, template]) => {
    const head = template
      .replaceAll('__METHOD__', 'POST')
      .replaceAll('__ENDPOINT__?cb=__RANDOM__', '/v1/email')
      .replaceAll('__HOST__', 'a')
      .replace(/^Content-type: .*$/m, `Content-Type: application/json\r\n${KEY}`)
    return [true, false].map((isLengthLonger) => ({ name, head, isLengthLonger }))
  })
}

for (const engine of ENGINES)
  test(`smuggling: ${engine.name} [request.framing]`, { skip: SUITE === null && 'set SUITES_DIR' }, async (t) => {
    const seen: string[] = []
    const routes = makeRoutes('public', ({ params }) => {
      seen.push(params.id ?? 'send')
      return { status: 200, json: {} }
    })
    const edge = await startEdge(ring, { engine, routes })
    t.teardown(() => edge.close())
    const wrong: string[] = []
    const tried = async ({ name, head, isLengthLonger }: Probe): Promise<void> => {
      const body = `${CHUNK}${HIDDEN}`
      // As a text of its length alone neither body is JSON.
      const length = isLengthLonger ? body.length : CHUNK.indexOf('\r\n') + 4
      const raw = `${head.replaceAll('__REPLACE_CL__', String(length))}\r\n${body}`
      const before = seen.length
      const came = await sendRaw(edge.port, Buffer.from(raw, 'latin1'), () => false, QUIET_MS)
      const answer = readAnswer(came.text)
      const isOurs = answer?.headers['request-id'] !== undefined
      const label = `${name} ${isLengthLonger ? 'CL' : 'TE'}: ${answer?.status}`
      if (answer !== null && answer.status < 400) wrong.push(`${label} was accepted`)
      if (IS_CODED.test(head) && isOurs) wrong.push(`${label} was read by its length`)
      if (isLengthLonger && /hidden/.test(seen.slice(before).join())) wrong.push(`${label} let a request through`)
    }
    const probes = probesOf(SUITE ?? '')
    for (let at = 0; at < probes.length; at += AT_ONCE)
      await Promise.all(probes.slice(at, at + AT_ONCE).map((probe) => tried(probe)))
    t.ok(probes.length >= 3419, `${probes.length} requests`)
    t.same(wrong, [])
    t.same(
      seen.filter((id) => id === 'send'),
      [],
      'no body was read by its chunks',
    )
    t.same(edge.faults, [])
  })
