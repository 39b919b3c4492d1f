/** sign-event - signatures as a customer verifies them: vectors that others made, both schemes, their order. */

import { readFileSync } from 'node:fs'
import Stripe from 'stripe'
import { test } from 'tap'
import { eventHeaders } from '../../src/webhooks/sign-event.ts'
import { findSuite } from '../support/machine/suites.ts'

const SECRETS = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD']
const BODY = '{"id":"1","event":"bounced","recipient":"josé@example.com"}'
const { signature } = new Stripe('sk_test_of_nobody').webhooks
const suite = findSuite('webhook/stripe-scheme.json')
const skip = suite === null ? 'no suites folder' : false

interface Case {
  readonly t: number
  readonly body: string
  readonly secrets: readonly string[]
  readonly header: string
  readonly verifyWith: string
  readonly stripeAccepts: boolean
}

test('sign event: the vectors of the scheme [webhook.signature]', { skip }, async (t) => {
  const { cases } = JSON.parse(readFileSync(suite as string, 'utf8')) as { cases: readonly Case[] }
  t.ok(cases.length >= 16, `${cases.length} cases`)
  for (const { t: unixSeconds, body, secrets, header, verifyWith, stripeAccepts } of cases) {
    const headers = eventHeaders({ deliveryId: 'd1', event: 'bounced', body, secrets, unixSeconds })
    const made = headers['service-signature'] ?? ''
    t.equal(made, header)
    const age = Math.floor(Date.now() / 1000) - unixSeconds
    t.equal(signature?.verifyHeader(body, made, verifyWith, age + 300), stripeAccepts)
  }
})

test('sign event: headers of an attempt, one v1 for each secret in their order [webhook.signature]', async (t) => {
  const unixSeconds = Math.floor(Date.now() / 1000)
  const input = { deliveryId: 'd1', event: 'bounced', body: BODY, secrets: SECRETS, unixSeconds }
  const headers = eventHeaders(input)
  const { 'service-signature': _ours, 'webhook-signature': _standard, ...plain } = headers
  t.strictSame(plain, {
    'content-type': 'application/json',
    'user-agent': 'Service-Webhooks/1',
    'service-event': 'bounced',
    'service-delivery-id': 'd1',
    'webhook-id': 'd1',
    'webhook-timestamp': String(unixSeconds),
  })
  const header = headers['service-signature'] ?? ''
  t.match(header, /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/)
  t.equal(header.split(',')[0], `t=${unixSeconds}`)
  const alone = SECRETS.map((secret) => eventHeaders({ ...input, secrets: [secret] }))
  t.equal(header, `${alone[0]?.['service-signature']},${alone[1]?.['service-signature']?.split(',')[1]}`)
  t.equal(headers['webhook-signature'], alone.map((one) => one['webhook-signature']).join(' '))
  for (const secret of SECRETS) t.equal(signature?.verifyHeader(BODY, header, secret, 300), true)
  const wrong: [string, string][] = [
    [`${BODY} `, SECRETS[0] ?? ''],
    [BODY, 'whsec_other'],
    [BODY, SECRETS[0]?.slice('whsec_'.length) ?? ''],
  ]
  for (const [body, secret] of wrong) t.throws(() => signature?.verifyHeader(body, header, secret, 300))
})
