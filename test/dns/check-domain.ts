/** check-domain - both records against real DNS servers, and the second opinion of the zone's own server. */

import type { Test } from 'tap'
import t from 'tap'
import type { CheckDomainDeps, DomainFound } from '../../src/dns/check-domain.ts'
import { checkDomain } from '../../src/dns/check-domain.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import type { Zone } from '../support/peers/zone.ts'
import { startZone } from '../support/peers/zone.ts'

const RETURN_PATH = { type: 'CNAME', host: 'sw-bounce.acme.test', value: 'x.rp.svc.test' } as const
const DKIM = { type: 'TXT', host: 'sw1._domainkey.acme.test', value: 'v=DKIM1; k=rsa; p=ABCD' } as const
const JOB = { returnPath: RETURN_PATH, dkim: DKIM }

async function withZone(t: Test, more: Partial<CheckDomainDeps> = {}) {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
  t.teardown(async () => {
    resolver.close()
    await zone.close()
  })
  const whole = () => checkDomain(JOB, { resolver, nowMs: () => 0, authoritative: null, ...more })
  const check = async () => resultsOf(await whole())
  return { zone, check, whole }
}

/** The finding of each record, without the existing value. */
function resultsOf({ instead: _, ...results }: DomainFound): Omit<DomainFound, 'instead'> {
  return results
}

const publish = (zone: Zone, target: string = RETURN_PATH.value, txt: string = DKIM.value) => {
  zone.set(RETURN_PATH.host, { type: 'CNAME', domain: target })
  zone.set(DKIM.host, { type: 'TXT', data: [txt.slice(0, 9), txt.slice(9)] })
}

t.test('check-domain: each result', async (t) => {
  const { zone, check } = await withZone(t)
  t.same(await check(), { returnPath: 'missing', dkim: 'missing' })
  publish(zone)
  t.same(await check(), { returnPath: 'ok', dkim: 'ok' }, 'no answer is kept from before')
  publish(zone, 'other.test', 'v=DKIM1; p=WXYZ')
  t.same(await check(), { returnPath: 'mismatch', dkim: 'mismatch' })
  zone.set(RETURN_PATH.host, { type: 'A', address: '192.0.2.1' })
  zone.set(DKIM.host)
  t.same(await check(), { returnPath: 'mismatch', dkim: 'missing' }, 'a flattened CNAME')
  zone.fail(RETURN_PATH.host, 'servfail')
  t.same(await check(), { returnPath: 'dns_error', dkim: 'missing' })
})

t.test('check-domain: a mismatch names the existing value [domain.verify]', async (t) => {
  const { zone, whole } = await withZone(t)
  const nothing = { returnPath: [], dkim: [] }
  t.same((await whole()).instead, nothing, 'nothing is there')
  publish(zone)
  t.same((await whole()).instead, nothing, 'nothing stands there instead')
  zone.set(RETURN_PATH.host, { type: 'CNAME', domain: 'one.test' })
  zone.set('one.test', { type: 'CNAME', domain: 'two.test' })
  zone.set(
    DKIM.host,
    { type: 'TXT', data: ['v=DKIM1; ', 'p=WXYZ'] },
    { type: 'TXT', data: 'x'.repeat(900).match(/.{1,255}/g) ?? [] },
  )
  const { instead } = await whole()
  t.same(instead.returnPath, ['one.test'], 'the name that the record itself leads to')
  t.same([...instead.dkim].sort(), ['v=DKIM1; p=WXYZ', 'x'.repeat(600)], 'strings are joined, and bounded')
  zone.set(RETURN_PATH.host, { type: 'A', address: '192.0.2.1' })
  t.same((await whole()).instead.returnPath, ['192.0.2.1'], 'an address in place of the CNAME')
  zone.set(DKIM.host, ...Array.from({ length: 9 }, (_, n) => ({ type: 'TXT' as const, data: `text ${n}` })))
  t.equal((await whole()).instead.dkim.length, 5)
  zone.fail(DKIM.host, 'servfail')
  t.same((await whole()).instead.dkim, [])
})

t.test(
  'check-domain: a CNAME may lead there through others, a long TXT has several strings [domain.records]',
  async (t) => {
    const { zone } = await withZone(t)
    const key = 'A'.repeat(392)
    const job = { returnPath: RETURN_PATH, dkim: { ...DKIM, value: `v=DKIM1; k=rsa; p=${key}` } }
    const look = async () =>
      resultsOf(
        await checkDomain(job, {
          resolver: createResolver({ servers: [zone.server], nowMs: () => 0 }),
          nowMs: () => 0,
          authoritative: null,
        }),
      )
    zone.set(RETURN_PATH.host, { type: 'CNAME', domain: 'one.acme.test' })
    zone.set('one.acme.test', { type: 'CNAME', domain: 'Two.Acme.Test' })
    zone.set('two.acme.test', { type: 'CNAME', domain: RETURN_PATH.value })
    zone.set(
      DKIM.host,
      { type: 'TXT', data: job.dkim.value.match(/.{1,255}/g) ?? [] },
      { type: 'TXT', data: 'some other text' },
    )
    t.same(await look(), { returnPath: 'ok', dkim: 'ok' })
    zone.set('two.acme.test', { type: 'A', address: '192.0.2.1' })
    t.equal((await look()).returnPath, 'mismatch', 'an end that is another name')
    zone.fail('one.acme.test', 'servfail')
    t.equal((await look()).returnPath, 'dns_error')
    zone.set('one.acme.test', { type: 'CNAME', domain: RETURN_PATH.host })
    t.equal((await look()).returnPath, 'mismatch', 'a loop')
    const keys = [job.dkim.value, job.dkim.value.replace('AAAA', 'BBBB')]
    zone.set(DKIM.host, ...keys.map((one) => ({ type: 'TXT' as const, data: one.match(/.{1,255}/g) ?? [] })))
    t.equal((await look()).dkim, 'mismatch', 'two keys under one selector')
  },
)

t.test('check-domain: a silent resolver ends in time', async (t) => {
  const { zone, check } = await withZone(t, { totalTimeoutMs: 2_000 })
  publish(zone)
  zone.fail(DKIM.host, 'timeout')
  t.same(await check(), { returnPath: 'ok', dkim: 'dns_error' })
})

t.test('check-domain: without a zone to be found the resolver counts', async (t) => {
  const authority = await startZone()
  t.teardown(() => authority.close())
  const authoritative = { port: authority.port, privateNetworksAllowed: ['127.0.0.0/8'] }
  const { check } = await withZone(t, { authoritative })
  t.same(await check(), { returnPath: 'missing', dkim: 'missing' }, 'no zone found: the resolver counts')
  t.same(authority.asked, [])
})

t.test('check-domain: the answer of the authoritative server counts', async (t) => {
  const authority = await startZone()
  t.teardown(() => authority.close())
  const authoritative = { port: authority.port, privateNetworksAllowed: ['127.0.0.0/8'] }
  const { zone, check } = await withZone(t, { authoritative })
  zone.set('acme.test', { type: 'NS', ns: 'ns.acme.test' })
  zone.set('ns.acme.test', { type: 'A', address: '127.0.0.1' })
  publish(authority)
  t.same(await check(), { returnPath: 'ok', dkim: 'ok' })
  authority.fail(RETURN_PATH.host, 'servfail')
  t.same(await check(), { returnPath: 'missing', dkim: 'ok' }, 'its failure is none of ours')
  authority.asked.length = 0
  publish(zone)
  t.same(await check(), { returnPath: 'ok', dkim: 'ok' })
  t.same(authority.asked, [], 'an ok needs no second opinion')
  zone.fail(DKIM.host, 'servfail')
  t.same(await check(), { returnPath: 'ok', dkim: 'dns_error' }, 'the resolver failed: nobody else is asked')
  t.same(authority.asked, [])
})

t.test('check-domain: a record that fails beside one that is missing is put to the authoritative server', async (t) => {
  const authority = await startZone()
  t.teardown(() => authority.close())
  const authoritative = { port: authority.port, privateNetworksAllowed: ['127.0.0.0/8'] }
  const { zone, check } = await withZone(t, { authoritative })
  zone.set('acme.test', { type: 'NS', ns: 'ns.acme.test' })
  zone.set('ns.acme.test', { type: 'A', address: '127.0.0.1' })
  zone.fail(DKIM.host, 'servfail')
  t.same(await check(), { returnPath: 'missing', dkim: 'missing' })
  publish(authority)
  authority.remove(RETURN_PATH.host)
  t.same(await check(), { returnPath: 'missing', dkim: 'ok' })
  authority.fail(DKIM.host, 'servfail')
  t.same(await check(), { returnPath: 'missing', dkim: 'dns_error' }, 'its failure is none of ours')
  zone.fail('acme.test', 'servfail')
  zone.set('test', { type: 'NS', ns: 'ns.acme.test' })
  t.same(await check(), { returnPath: 'missing', dkim: 'dns_error' }, 'a server above the zone only refers')
})

t.test('check-domain: the next authoritative server is asked after one that does not answer', async (t) => {
  const authority = await startZone()
  t.teardown(() => authority.close())
  const authoritative = { port: authority.port, privateNetworksAllowed: ['127.0.0.0/8'] }
  const { zone, check } = await withZone(t, { authoritative })
  zone.set('acme.test', { type: 'NS', ns: 'dead.acme.test' }, { type: 'NS', ns: 'ns.acme.test' })
  zone.set('dead.acme.test', { type: 'A', address: '127.0.0.9' })
  zone.set('ns.acme.test', { type: 'A', address: '127.0.0.1' })
  publish(authority)
  t.same(await check(), { returnPath: 'ok', dkim: 'ok' })
})

t.test('check-domain: an authoritative server at a private address is not asked', async (t) => {
  const authority = await startZone()
  t.teardown(() => authority.close())
  const { zone, check } = await withZone(t, { authoritative: { port: authority.port, privateNetworksAllowed: [] } })
  zone.set('acme.test', { type: 'NS', ns: 'ns.acme.test' })
  zone.set('ns.acme.test', { type: 'A', address: '127.0.0.1' })
  publish(authority)
  t.same(await check(), { returnPath: 'missing', dkim: 'missing' })
  t.same(authority.asked, [])
})
