/** Signatures of webhooks: the service's own are taken, with either secret, and nothing that was changed. */
import t from 'tap'
import { SignatureError, verifyWebhook } from '../../src/client/sendwright.ts'
import { eventHeaders } from '../../src/webhooks/sign-event.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
const OTHER = 'whsec_b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2w='
const body = JSON.stringify({ event: 'delivered', recipient: 'ädа@example.com' })

function headersAt(ageSeconds: number, secrets: readonly string[] = [SECRET]): Record<string, string> {
  const unixSeconds = Math.floor(Date.now() / 1000) - ageSeconds
  const headers = eventHeaders({ deliveryId: 'd', event: 'delivered', body, secrets, unixSeconds })
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

t.test('client: what the service signs is taken, as text and bytes, with either secret [client.verify]', async (t) => {
  t.match(await verifyWebhook(body, headersAt(0), SECRET), { event: 'delivered' })
  t.match(await verifyWebhook(Buffer.from(body), new Headers(headersAt(0)), SECRET), { event: 'delivered' })
  t.ok(await verifyWebhook(body, headersAt(0, [OTHER, SECRET]), SECRET))
  t.ok(await verifyWebhook(body, headersAt(0, [SECRET]), [OTHER, SECRET]))
  t.ok(await verifyWebhook(body, headersAt(400), SECRET, { toleranceSeconds: 500 }))
})

t.test('client: what was changed, is old or is not signed is refused [client.verify]', async (t) => {
  const signed = headersAt(0)['service-signature'] ?? ''
  const wrong: [string, Record<string, string>, string][] = [
    [`${body} `, headersAt(0), SECRET],
    [body, headersAt(0), OTHER],
    [body, headersAt(400), SECRET],
    [body, headersAt(-400), SECRET],
    [body, {}, SECRET],
    [body, { 'service-signature': signed.replace('v1=', 'v0=') }, SECRET],
    [body, { 'service-signature': signed.slice(0, -1) }, SECRET],
    [body, { 'service-signature': signed.replace(/^t=\d+/, 't=x') }, SECRET],
    [body, { 'service-signature': '' }, SECRET],
    [body, { 'service-signature': `${signed.split(',')[0]}${',v1=00'.repeat(50_000)}` }, SECRET],
  ]
  for (const [text, headers, secret] of wrong) await t.rejects(verifyWebhook(text, headers, secret), SignatureError)
})

t.test('client: a secret that is not set is an error, and no key that anyone has [client.verify]', async (t) => {
  const unset = undefined as unknown as string
  for (const secret of ['', unset, [''], [unset]])
    await t.rejects(verifyWebhook(body, headersAt(0), secret), { name: 'SendwrightError', message: /^No secret/ })
  await t.rejects(verifyWebhook(body, headersAt(400), SECRET, { toleranceSeconds: Number.NaN }), SignatureError)
})
