/** ipv6 - with DELIVERY_IPV6=on a service delivers to a server that has no address of IPv4. */
import t from 'tap'
import { startMx } from '../support/peers/mx.ts'
import { startDelivery } from '../support/service/delivery.ts'

const networks = { PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8,::1/128' }
const delivery = await startDelivery({ DELIVERY_IPV6: 'on', ...networks })
t.teardown(() => delivery.stop())

t.test('delivery: to a server that has IPv6 alone [delivery.ipv6]', async (t) => {
  const { send, messageWhen, port, service, zone } = delivery
  const mx = await startMx({}, { host: '::1', port }).catch(() => null)
  if (mx === null) return t.comment('this machine has no IPv6: skipped')
  t.teardown(() => mx.close())
  zone.set('six.test', { type: 'MX', exchange: 'mx.six.test', priority: 10 })
  zone.set('mx.six.test', { type: 'AAAA', address: '::1' })
  await messageWhen(await send(['ann@six.test']), ({ status }) => status === 'delivered')
  t.equal(mx.sessions.length, 1)
  t.equal(service.config.deliveryIpv6, true)
})
