/** Fuzz of POST /v1/email: bodies near the schema. FUZZ_RUNS sets how many, SEED which. */

import fc from 'fast-check'
import { test } from 'tap'

import { EMAIL_BODY, type EmailBody } from '../../../schemas/email.ts'
import { ERROR } from '../../../schemas/error.ts'
import { refusalReply } from '../../../src/http/respond.ts'
import { compileBody } from '../../../src/http/shape/validate.ts'
import { canonicalJson, normaliseEmail } from '../../../src/sending/email-form.ts'
import { call, makeKeyRing, startEdge } from '../../support/service/edge-listener.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 10_000)
const SEED = Number(process.env.SEED ?? 1)
const HTTP_RUNS = Math.ceil(RUNS / 10)

const check = compileBody<EmailBody>(EMAIL_BODY)
/** A path may hold what no request may: it repeats the client's own name of a field. */
const checkError = compileBody(ERROR)
const isError = (value: unknown) => checkError(value, false)

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom('', '\0', '\ud800', 'a\r\nBcc: x@example.com', '\u{1F600}', '__proto__', ' ', '\u0085', '\ufeff'),
  fc.nat(1100).map((length) => 'x'.repeat(length)),
)
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text)
const email = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a@example.com', 'A@Example.com', "o'b+c@mail.example.org", 'x_y-z@1.co') },
  { weight: 1, arbitrary: fc.emailAddress() },
  { weight: 1, arbitrary: text },
)
const address = fc.oneof(
  { weight: 4, arbitrary: email },
  { weight: 2, arbitrary: fc.record({ email, name: fc.option(text) }, { requiredKeys: ['email'] }) },
  { weight: 1, arbitrary: anything },
)
const addresses = fc.oneof(
  { weight: 9, arbitrary: fc.array(address, { maxLength: 5 }) },
  { weight: 1, arbitrary: fc.nat(60).map((count) => Array.from({ length: count }, (_, at) => `r${at}@example.com`)) },
)
const attachment = fc.record(
  {
    name: fc.oneof(fc.constant('a.pdf'), text),
    content: fc.oneof(fc.base64String({ maxLength: 40 }), text),
    contentType: fc.oneof(fc.constant('application/pdf'), text),
    contentId: fc.option(text),
  },
  { requiredKeys: ['name', 'content'] },
)
const map = fc.dictionary(
  fc.oneof(fc.constantFrom('X-A', 'from', 'ARC-Seal', 'k'), text),
  fc.oneof(fc.constant('v'), text),
  {
    maxKeys: 22,
  },
)

/** Mostly right, each field sometimes wrong, sometimes a field too many, sometimes nothing of the kind. */
const nearBody = fc.record(
  {
    from: address,
    to: addresses,
    cc: addresses,
    bcc: addresses,
    subject: fc.oneof(fc.constant('Hello'), text),
    text: fc.oneof(fc.constant('Hello'), text),
    html: fc.oneof(fc.constant('<p>Hello'), text),
    streamId: fc.oneof(fc.uuid(), text),
    headers: fc.oneof(map, anything),
    attachments: fc.oneof(fc.array(attachment, { maxLength: 3 }), anything),
    tag: fc.option(text),
    metadata: fc.oneof(map, anything),
    other: anything,
  },
  { requiredKeys: ['from', 'to', 'subject', 'text'] },
)
const plainBody = fc.record(
  { from: email, to: fc.array(email, { minLength: 1, maxLength: 4 }), subject: text, text, tag: fc.option(text) },
  { requiredKeys: ['from', 'to', 'subject', 'text'] },
)
const body = fc.oneof(
  { weight: 5, arbitrary: nearBody },
  { weight: 4, arbitrary: plainBody },
  { weight: 1, arbitrary: anything },
)

/** As it arrives over the wire. */
function parsed(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

test(`fuzz email: ${RUNS} bodies are taken whole or refused with issues [error.issues]`, async (t) => {
  let taken = 0
  fc.assert(
    fc.property(body, (value) => {
      const checked = check(parsed(value))
      if (!checked.ok) return isTold(checked.issues)
      taken++
      const message = normaliseEmail(checked.value)
      return (
        message.recipients.length >= 1 &&
        message.recipients.length <= 50 &&
        !/[\0-\x1f\x7f-\x9f]/.test(message.subject) &&
        canonicalJson(JSON.parse(canonicalJson(checked.value))) === canonicalJson(checked.value)
      )
    }),
    { numRuns: RUNS, seed: SEED },
  )
  t.ok(taken > RUNS / 100, `${taken} of ${RUNS} were taken`)
  t.ok(taken < RUNS, 'and not all')
})

test(`fuzz email: ${HTTP_RUNS} bodies over HTTP: 200 or a refusal of the error schema [error.body]`, async (t) => {
  const ring = makeKeyRing()
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  await fc.assert(
    fc.asyncProperty(body, async (value) => {
      const headers = { 'Content-Type': 'application/json' }
      const sent = JSON.stringify(value)
      const came = await call(edge.port, { method: 'POST', path: '/v1/email', token: ring.sk, headers, body: sent })
      if (came.status === 200) return check(JSON.parse(sent)).ok
      return came.status === 400 && isError(came.json).ok
    }),
    { numRuns: HTTP_RUNS, seed: SEED },
  )
  t.same(edge.faults, [])
})

function isTold(issues: readonly { path: string; message: string }[]): boolean {
  const exact = issues.map(({ path }) => path).filter((path) => !path.includes('…'))
  // The fast validator and the walk agree: the sentence for a disagreement never appears.
  return (
    issues.every(({ message }) => message !== 'Must match the schema') &&
    new Set(exact).size === exact.length &&
    isError(refusalReply('invalid_request', { issues }).json).ok
  )
}
