/** Tests of src/edge/respond.ts. */

import { test } from 'tap'

import { ERROR } from '../../schemas/error.ts'
import { REFUSALS } from '../../schemas/refusals.ts'
import { refusalReply } from '../../src/http/respond.ts'
import { compileBody } from '../../src/http/shape/validate.ts'

const ID = '01890c5a-0000-7000-8000-0123456789ab'
const AT = '2026-01-01T00:00:30.000Z'
const VALUES: Readonly<Record<string, unknown>> = {
  issues: [{ path: '', message: 'Wrong' }],
  domain: 'example.com',
  sizeBytes: 1,
  max: 1,
  streamId: ID,
  webhookId: ID,
  serverId: ID,
  domainId: ID,
  pausedAt: AT,
  reason: 'complaint',
  role: 'support',
  required: 'admin',
  scope: 'account',
  limit: 1,
  used: 1,
  requested: 1,
  resetsAt: AT,
}

const isError = compileBody(ERROR)

for (const { code, status, fields } of REFUSALS) {
  test(`respond: ${code} is ${status} in the error shape [error.body]`, async (t) => {
    const extra = Object.fromEntries(Object.keys(fields).map((field) => [field, VALUES[field]]))
    if ('period' in fields) extra.period = code === 'cap_reached' ? 'month' : 'minute'
    const reply = refusalReply(code, extra)
    t.equal(reply.status, status)
    t.equal(isError(reply.json).ok, true)
    t.equal(isError({ ...(reply.json as object), other: 1 }).ok, false)
    t.equal((reply.json as { error: string }).error, code)
    t.match((reply.json as { message: string }).message, /^[A-Z].*[^.]$/)
    t.equal(status === 429 || status === 503, reply.headers?.['Retry-After'] !== undefined)
  })
}

test('respond: Retry-After is rounded up and at least 1 [error.retry-after]', async (t) => {
  const at = Date.parse(AT)
  for (const [nowMs, seconds] of [
    [at - 30_000, '30'],
    [at - 29_001, '30'],
    [at - 1, '1'],
    [at, '1'],
    [at + 5000, '1'],
  ] as const) {
    t.equal(refusalReply('rate_limited', { resetsAt: AT }, undefined, nowMs).headers?.['Retry-After'], seconds)
  }
  t.equal(refusalReply('unavailable').headers?.['Retry-After'], '1')
})

test('respond: a sentence of one’s own, and a code that is none [error.body]', async (t) => {
  t.same(refusalReply('not_found', {}, 'No such route').json, { error: 'not_found', message: 'No such route' })
  t.throws(() => refusalReply('no_such_code' as 'not_found'), TypeError)
})
