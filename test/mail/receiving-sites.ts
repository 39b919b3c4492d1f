/** receiving-sites - the provider of a mail server by its name. */
import t from 'tap'
import { findProvider, receivingSite } from '../../src/mail/receiving-sites.ts'

for (const [host, site] of [
  ['gmail-smtp-in.l.google.com', 'google'],
  ['alt1.aspmx.l.google.com', 'google'],
  ['acme-com.mail.protection.outlook.com', 'microsoft'],
  ['hotmail-com.olc.protection.outlook.com', 'microsoft'],
  ['acme-com.p-v1.mx.microsoft', 'microsoft'],
  ['mta6.am0.yahoodns.net', 'yahoo'],
  ['mx02.mail.icloud.com', 'apple'],
  ['mx00.emig.gmx.net', 'united-internet'],
  ['mx01.kundenserver.de', 'united-internet'],
  ['mxa-001.gpphosted.com', 'proofpoint'],
  ['eu-smtp-inbound-1.mimecast.com', 'mimecast'],
  ['d1.ess.barracudanetworks.com', 'barracuda'],
] as const)
  t.test(`receiving-sites: ${host} is ${site}`, async (t) => {
    t.equal(findProvider(host), site)
    t.equal(receivingSite(host), site)
  })

t.test('receiving-sites: another server counts under its registrable domain', async (t) => {
  t.equal(findProvider('mx.acme.co.uk'), null)
  t.equal(receivingSite('mx.acme.co.uk'), 'acme.co.uk')
  t.equal(receivingSite('not-google.com'), 'not-google.com', 'an end is whole labels')
  t.equal(receivingSite('localhost'), null)
  t.equal(receivingSite('192.0.2.1'), null)
})
