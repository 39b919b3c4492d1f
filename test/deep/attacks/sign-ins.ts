/** Sign-ins of invented addresses, more at once than may wait. A user from another network is not turned away. */
import t from 'tap'
import { Browser } from '../../support/clients/browser.ts'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'

const service = await startAttacked(t, { TRUSTED_PROXIES: '127.0.0.0/8' })
const origin = `http://127.0.0.1:${service.settings.HTTP_PORT}`
const signIn = async (name: string, network: string): Promise<number> => {
  const body = { address: `${name}@example.net`, password: 'correct horse battery' }
  return (await new Browser(origin, network).call('POST /session', body)).status
}
await signIn('first', '192.0.2.1')

t.test('sign-ins: a flood from two networks does not slow sign-ins of a third one', async (t) => {
  let own: number[] = []
  const harm = await service.during(async () => {
    const flood = Array.from({ length: 50 }, (_, n) => signIn(`invented${n}`, `198.51.100.${n % 2}`))
    // A sign-in of the flood was turned away, so all places are taken.
    t.equal(
      await Promise.any(flood.map(async (status) => ((await status) === 503 ? 503 : Promise.reject(status)))),
      503,
    )
    own = await Promise.all(['ada', 'bob', 'eve'].map((name) => signIn(name, '203.0.113.1')))
    await Promise.all(flood)
  })
  t.same(own, [401, 401, 401])
  isHarmless(t, harm)
})
