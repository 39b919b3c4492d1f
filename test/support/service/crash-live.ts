/** crash-live - a sending domain of the first account, verified over real DNS, so that a live server may send. */
import type { FirstRun } from '../../../src/service/first-start.ts'
import { until } from '../machine/until.ts'
import type { Zone } from '../peers/zone.ts'

const VERIFIED_MS_MAX = 30_000

/**
 * Adds a domain through the API of the service on `httpPort`, sets its records in `zone`, and verifies it. Returns its
 * id.
 */
export async function verifyDomain(
  httpPort: number,
  { account }: FirstRun,
  { zone, domain }: { zone: Zone; domain: string },
): Promise<string> {
  const added = await post(httpPort, account.token, { path: '/v1/domains', body: { domain } })
  zone.set(added.returnPath.host, { type: 'CNAME', domain: added.returnPath.value })
  zone.set(added.dkim.host, { type: 'TXT', data: added.dkim.value.match(/.{1,255}/g) })
  const path = `/v1/domains/${added.domainId}/verify`
  // Each one asks the DNS again, because a question without an answer proves nothing.
  await until(async () => (await post(httpPort, account.token, { path })).verified === true, VERIFIED_MS_MAX)
  return added.domainId
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
async function post(port: number, token: string, { path, body }: { path: string; body?: object }): Promise<any> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, connection: 'close', 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return answer.json()
}
