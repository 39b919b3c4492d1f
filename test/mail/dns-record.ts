/** dns-record - expected records, and which found ones match. */

import t from 'tap'
import { compareCname, compareDkimTxt, makeDkimRecord, makeReturnPathRecord } from '../../src/mail/dns-record.ts'

t.test('dns-record: the two records', async (t) => {
  const domainId = '018f1234-5678-7abc-8def-0123456789ab'
  t.same(makeReturnPathRecord({ domain: 'acme.test', domainId, serviceDomain: 'svc.test' }), {
    type: 'CNAME',
    host: 'sw-bounce.acme.test',
    value: '8def0123456789ab.rp.svc.test',
  })
  t.same(makeDkimRecord({ domain: 'acme.test', selector: 'sw1', value: 'v=DKIM1; p=A' }), {
    type: 'TXT',
    host: 'sw1._domainkey.acme.test',
    value: 'v=DKIM1; p=A',
  })
})

const CNAMES: [found: string[], hasAddress: boolean, check: string][] = [
  [['x.rp.svc.test'], false, 'ok'],
  [['X.RP.svc.Test.'], false, 'ok'],
  [['y.rp.svc.test'], false, 'mismatch'],
  [['x.rp.svc.test', 'y.rp.svc.test'], false, 'mismatch'],
  [[], true, 'mismatch'],
  [[], false, 'missing'],
]
for (const [found, hasAddress, check] of CNAMES) {
  t.test(`dns-record: CNAME ${found.join(' ')} is ${check}`, async (t) =>
    t.equal(compareCname('x.rp.svc.test', found, hasAddress), check),
  )
}

const EXPECTED = 'v=DKIM1; k=rsa; p=ABCD+/=='
const TXTS: [found: string[][], check: string][] = [
  [[[EXPECTED]], 'ok'],
  [[['v=DKIM1; k=rsa; p=AB', 'CD+/==']], 'ok'],
  [[['v=DKIM1;k=rsa;p=AB CD\t+/==;']], 'ok'],
  [[['p=ABCD+/==']], 'ok'],
  [[['t=s; v=DKIM1; h=sha256; p=ABCD+/==; n=note']], 'ok'],
  [[['v=spf1 -all'], [EXPECTED]], 'ok'],
  [[], 'missing'],
  [[['v=spf1 -all']], 'mismatch'],
  [[['v=DKIM1; k=rsa; p=']], 'mismatch'],
  [[['v=DKIM1; k=ed25519; p=ABCD+/==']], 'mismatch'],
  [[['v=DKIM2; p=ABCD+/==']], 'mismatch'],
  [[['v=DKIM1; k=rsa; p=ABCD']], 'mismatch'],
  [[[EXPECTED], [EXPECTED]], 'mismatch'],
]
for (const [found, check] of TXTS) {
  t.test(`dns-record: TXT ${JSON.stringify(found)} is ${check}`, async (t) =>
    t.equal(compareDkimTxt(EXPECTED, found), check),
  )
}
