/** domain - a domain that lost a record, and one that cannot be verified, in a real browser with the clock moved. */
import t from 'tap'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { keepPictures, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'

const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const

t.test(
  'domain: a domain that lost its record shows it in red [domain.states]',
  { skip: MOVED_CLOCK_SKIP },
  async (t) => {
    const clock = makeMovedClock()
    const zone = await startZone()
    const settings = { DNS_SERVERS: zone.server, SERVICE_DOMAIN: 'service.example' }
    const rig = await clock.around(() => startDashboard(settings))
    t.teardown(async () => {
      await rig.stop()
      await zone.close()
    })
    const { service, origin, testServerId } = rig
    const domainId = await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'acme.example' })
    const token = service.firstRun.account.token
    const { json } = await service.call(`GET /v1/domains/${domainId}`, { token })
    t.notOk('unverifiedSince' in json, 'it never stopped')
    zone.set(json.dkim.host)
    const verify = async () => (await service.call(`POST /v1/domains/${domainId}/verify`, { token })).json
    const warned = await until(async () => {
      const checked = await verify()
      return checked.failingSince === null ? null : checked
    }, 60_000)
    t.notOk('unverifiedSince' in warned, 'it still sends')
    clock.moveTo(1.1)
    const lost = await until(async () => {
      const checked = await verify()
      return checked.verified ? null : checked
    }, 60_000)
    t.equal(lost.unverifiedSince, lost.lastCheckedAt)
    const context = await rig.signedIn(VIEW)
    const { page, faults } = await watchedPage(context, origin)
    await page.goto(`${origin}/dashboard/domains/${domainId}`)
    await page.getByText(/Stopped sending on .*: the DKIM record is missing or wrong/).waitFor()
    await page.locator('.chip.bounced').getByText('Stopped sending').waitFor()
    await keepPictures(page, 'domain-lost')
    await page.goto(`${origin}/dashboard/servers/${testServerId}/overview`)
    await page
      .locator('.needs li')
      .filter({ hasText: 'acme.example stopped sending on' })
      .locator('.node.bounced')
      .waitFor()
    t.same(faults, [])
    await context.close()
  },
)

t.test(
  'domain: a domain whose records point to .localhost shows that it cannot be verified [domain.add]',
  async (t) => {
    const rig = await startDashboard({ SERVICE_DOMAIN: 'sendwright.localhost' })
    t.teardown(() => rig.stop())
    const { service, origin } = rig
    const body = { domain: 'mail.acme.example' }
    const { json } = await service.call('POST /v1/domains', { token: service.firstRun.account.token, body })
    const context = await rig.signedIn(VIEW)
    const { page, faults } = await watchedPage(context, origin)
    await page.goto(`${origin}/dashboard/domains/${json.domainId}`)
    await page.getByText('so this domain cannot be verified').waitFor()
    await keepPictures(page, 'domain-localhost')
    await page.goto(`${origin}/dashboard/domains`)
    await page.getByRole('button', { name: 'Add a domain' }).first().click()
    const hint = page.getByText('has no public DNS records')
    await page.getByLabel('Domain', { exact: true }).fill('mail.acme.com')
    t.equal(await hint.count(), 0)
    await page.getByLabel('Domain', { exact: true }).fill('shop.localhost')
    await hint.waitFor()
    t.same(faults, [])
    await context.close()
  },
)

t.test('domain: a domain with inconclusive lookups shows that [domain.states]', async (t) => {
  const zone = await startZone()
  const rig = await startDashboard({ DNS_SERVERS: zone.server, SERVICE_DOMAIN: 'service.example' })
  t.teardown(async () => {
    await rig.stop()
    await zone.close()
  })
  const { service, origin } = rig
  const domainId = await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'acme.example' })
  const token = service.firstRun.account.token
  const { json } = await service.call(`GET /v1/domains/${domainId}`, { token })
  zone.set(json.returnPath.host)
  zone.fail(json.dkim.host, 'servfail')
  await service.call(`POST /v1/domains/${domainId}/verify`, { token })
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/domains/${domainId}`)
  await page.getByText('Verified. Ready to send.').waitFor()
  await page.getByText(/one record is missing or wrong, and the name servers do not answer for the other/).waitFor()
  await keepPictures(page, 'domain-undecided')
  t.same(faults, [])
  await context.close()
})
