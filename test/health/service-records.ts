/** service-records - which records an installation needs, and which addresses may stand in them. */
import t from 'tap'
import { isPublishable, serviceRecords } from '../../src/health/service-records.ts'

const config = {
  serviceDomain: 'svc.acme.net',
  inboundDomain: 'in.svc.acme.net',
  smtpHostname: 'out.svc.acme.net',
  relayUrl: null,
  privateNetworksAllowed: ['10.0.0.0/8'],
}
const unknown = { config, serviceKey: null, outAddresses: [], mxAddresses: [] }
const lines = (input: Partial<Parameters<typeof serviceRecords>[0]>) =>
  serviceRecords({ ...unknown, ...input }).map(({ host, type, value }) => `${host} ${type} ${value}`)

t.test('service-records: a private address is never one of them, though delivery may reach it', (t) => {
  const inside = ['10.0.0.5', '192.168.1.9', '172.16.0.1', '100.64.3.3', '169.254.1.1', 'fd00::1', 'fe80::1', '0.0.0.0']
  for (const address of inside) t.notOk(isPublishable(address, config.privateNetworksAllowed), address)
  t.notOk(isPublishable('::ffff:10.0.0.5', []), 'nor mapped')
  t.notOk(isPublishable('127.0.0.1', []))
  t.notOk(isPublishable('no address', []))
  t.ok(isPublishable('127.0.0.1', ['127.0.0.0/8']), 'an installation that tries itself')
  for (const address of ['8.8.8.8', '2606:4700::1']) t.ok(isPublishable(address, []), address)
  t.same(lines({ outAddresses: inside, mxAddresses: inside }), lines({}), 'as if none were known')
  t.end()
})

t.test('service-records: what is not known says what belongs there', (t) => {
  t.same(lines({}), [
    'out.svc.acme.net A null',
    'mx.svc.acme.net A null',
    'rp.svc.acme.net MX 10 mx.svc.acme.net',
    '*.rp.svc.acme.net MX 10 mx.svc.acme.net',
    'rp.svc.acme.net TXT null',
    '*.rp.svc.acme.net TXT null',
    'in.svc.acme.net MX 10 mx.svc.acme.net',
    '_dmarc.svc.acme.net TXT v=DMARC1; p=reject',
    '*._report._dmarc.rp.svc.acme.net TXT v=DMARC1',
  ])
  t.ok(
    serviceRecords(unknown).every(({ value, remark }) => value !== null || (remark ?? '').includes('public address')),
  )
  t.end()
})

t.test('service-records: both families, and nothing of the way out where there is a relay', (t) => {
  const outAddresses = ['8.8.8.8', '2606:4700::1']
  t.match(lines({ outAddresses, mxAddresses: ['8.8.4.4'] }), [
    'out.svc.acme.net A 8.8.8.8',
    'out.svc.acme.net AAAA 2606:4700::1',
    'mx.svc.acme.net A 8.8.4.4',
    /MX/,
    /MX/,
    'rp.svc.acme.net TXT v=spf1 ip4:8.8.8.8 ip6:2606:4700::1 -all',
  ])
  const relayed = lines({ outAddresses, config: { ...config, relayUrl: 'smtp://relay.example' } })
  t.notOk(relayed.some((line) => /spf1|^out\./.test(line)))
  t.end()
})
