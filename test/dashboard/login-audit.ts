/** login-audit - a member who has reached a limit is logged; if nothing could be counted no limit was reached. */
import t from 'tap'
import type { AskResult } from '../../cluster/work.ts'
import type { DashboardDeps, DashboardRequest } from '../../src/dashboard/deps.ts'
import { makeCreateInvitation } from '../../src/dashboard/people-routes.ts'

const ACCOUNT = '01938a00-0000-7000-8000-000000000001'
const USER = '01938a00-0000-7000-8000-000000000002'
const HMAC = 'A'.repeat(22)

/** The asks of an invitation to a cluster that always answers like this. */
async function askedOf(result: AskResult) {
  const asked: string[] = []
  const ask = async (_shard: number, { name }: { readonly name: string }) => {
    asked.push(name)
    return result
  }
  const secrets = { clientHmac: () => HMAC, loginHmac: () => HMAC }
  const deps = { ask, newCmdId: () => 'id', nowMs: () => 0, secrets, log: { error: () => undefined } }
  const key = { accountId: ACCOUNT, hash: 'h', row: { userId: USER } }
  const request = { key, client: '192.0.2.1', body: { address: 'ada@a.example', role: 'member', readOnly: false } }
  const invite = makeCreateInvitation(deps as unknown as DashboardDeps)
  const answer = await invite(request as unknown as DashboardRequest<'createInvitation'>)
  return { asked, status: 'status' in answer ? answer.status : null }
}

t.test('login-audit: a reached limit is logged [member.audit] [session.limits]', async (t) => {
  const reached = { kind: 'refused', code: 'too_many_tries', extra: { resetsAtMs: 1 } }
  const { asked, status } = await askedOf({ kind: 'answer', reply: reached } as unknown as AskResult)
  t.equal(status, 429)
  t.same(asked, ['count-try', 'count-try'], 'the second asks whether it is news')
})

t.test('login-audit: if nothing could be counted no limit is logged [member.audit]', async (t) => {
  const { asked, status } = await askedOf({ kind: 'unavailable' } as AskResult)
  t.equal(status, 503)
  t.same(asked, ['count-try'])
})
