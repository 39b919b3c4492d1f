/**
 * report-mail - aggregate reports over real SMTP into a running service: 200 samples signed by their reporters, and
 * mail that must not count. The sums of the API are those of the ledger of the samples.
 */
import { gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import t from 'tap'
import type { ReportRow, Reports, TlsReports } from '../../../../schemas/report/report.ts'
import { openDialog } from '../../../support/peers/smtp-dialog.ts'
import { startZone } from '../../../support/peers/zone.ts'
import { reportSamples } from '../../../support/reports/samples.ts'
import { publishReporter, reportMail, sayMail } from '../../../support/reports/send.ts'
import { type ReportSample, SAMPLE_DOMAIN } from '../../../support/reports/texts.ts'
import { startTestService } from '../../../support/service/service.ts'

const zone = await startZone()
const service = await startTestService({
  DNS_SERVERS: zone.server,
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  SERVICE_DOMAIN: 'service.example',
  SMTP_HOSTNAME: 'out.service.example',
  CONTENT_STORE: 'file',
})
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await zone.close()
})
const { account } = service.firstRun
const token = account.token
zone.set('out.service.example', { type: 'A', address: '127.0.0.1' })

const added = (await service.call('POST /v1/domains', { token, body: { domain: SAMPLE_DOMAIN } })).json
const address = /rua=mailto:(\S+)$/.exec(added.recommended[0].value)?.[1] as string
const other = (await service.call('POST /v1/domains', { token, body: { domain: 'other.example' } })).json
const otherAddress = /mailto:(\S+)$/.exec(other.recommended[0].value)?.[1] as string
const samples = reportSamples(Date.now())
for (const reporter of new Set(samples.map((one) => one.reporter))) publishReporter(zone, reporter)
const genuine = samples.filter(({ content }) => !('issue' in content))
const broken = samples.filter(({ content }) => 'issue' in content)
const [counted, apart] = [genuine.slice(0, 90), genuine.slice(90, 115)]

const read = async (path: string) => (await service.call(`GET /v1/domains/${added.domainId}/${path}`, { token })).json

/** Every row of the reports, page by page. */
async function allRows(query = ''): Promise<ReportRow[]> {
  const rows: ReportRow[] = []
  for (let after = ''; ; ) {
    const page: Reports = await read(`reports?limit=37${query}${after}`)
    rows.push(...page.reports)
    if (page.next === null) return rows
    after = `&after=${page.next}`
  }
}

const dmarcOf = (some: readonly ReportSample[]) =>
  some.flatMap(({ content }) => ('dmarc' in content ? content.dmarc : []))
const sumOf = (rows: readonly { readonly messages: number }[]) => rows.reduce((sum, { messages }) => sum + messages, 0)
const ledger = dmarcOf(counted)

t.test('reports: the address and the records of a domain [reports.address]', async (t) => {
  t.match(address, /^d-[a-z2-7]{40}@rp\.service\.example$/)
  t.match(added.recommended, [
    { type: 'TXT', host: `_dmarc.${SAMPLE_DOMAIN}`, value: `v=DMARC1; p=none; rua=mailto:${address}` },
    { type: 'TXT', host: `_smtp._tls.${SAMPLE_DOMAIN}`, value: `v=TLSRPTv1; rua=mailto:${address}` },
  ])
  const dialog = await openDialog(service.config.mxPort)
  await dialog.say('EHLO mx.google.com')
  await dialog.say('MAIL FROM:<>')
  const forged = `${address.slice(0, 10)}${address[10] === 'a' ? 'b' : 'a'}${address.slice(11)}`
  t.match(await dialog.say(`RCPT TO:<${forged}>`), /^550 5\.1\.1/)
  t.match(await dialog.say(`RCPT TO:<${address.toUpperCase()}>`), /^250/)
  t.match(await dialog.say(`RCPT TO:<${otherAddress}>`), /^452 4\.5\.3/)
  t.match(await dialog.say('RCPT TO:<postmaster@rp.service.example>'), /^452 4\.5\.3/)
  dialog.end()
})

t.test(
  'reports: 200 samples, each counted, apart or refused, and again without effect [reports.once] [reports.apart]',
  async (t) => {
    const dialog = await openDialog(service.config.mxPort)
    await dialog.say('EHLO mx.reporter.example')
    for (const sample of counted)
      t.match(await sayMail(dialog, address, reportMail(sample, address, { isSigned: true })), /^250/, sample.name)
    for (const sample of apart)
      t.match(await sayMail(dialog, address, reportMail(sample, address, { isSigned: false })), /^250/, sample.name)
    for (const sample of broken)
      t.match(
        await sayMail(dialog, address, reportMail(sample, address, { isSigned: true })),
        /^554 5\.6\.0/,
        sample.name,
      )
    for (const sample of counted.slice(0, 10))
      t.match(await sayMail(dialog, address, reportMail(sample, address, { isSigned: true })), /^250/)
    await dialog.say('QUIT')
    dialog.end()
  },
)

t.test('reports: the sums are those of the ledger [reports.read] [reports.rows]', async (t) => {
  const { totals, policy }: Reports = await read('reports')
  const failed = ledger.filter(({ dkim, spf }) => !dkim && !spf)
  t.same(totals, {
    messages: sumOf(ledger),
    passed: sumOf(ledger) - sumOf(failed),
    failed: sumOf(failed),
    dkimPassed: sumOf(ledger.filter(({ dkim }) => dkim)),
    spfPassed: sumOf(ledger.filter(({ spf }) => spf)),
    quarantined: sumOf(ledger.filter(({ disposition }) => disposition === 'quarantine')),
    rejected: sumOf(ledger.filter(({ disposition }) => disposition === 'reject')),
    ownFailed: 0,
  })
  t.match(policy, { p: 'none', adkim: 'r', pct: '100' })
  const rows = await allRows()
  t.equal(sumOf(rows), sumOf(ledger))
  const [first] = ledger as [(typeof ledger)[number]]
  const { source, messages: _, dkim, spf, override, ...same } = first
  const shown = rows.find((row) => row.source === source)
  t.match(shown, {
    ...same,
    dkim: dkim ? 'pass' : 'fail',
    spf: spf ? 'pass' : 'fail',
    override: override || null,
    own: false,
  })
  const bySource: Reports = await read('reports?groupBy=source')
  t.equal(sumOf(bySource.groups), sumOf(ledger))
  t.same(bySource.reports, [])
  const byDay: Reports = await read('reports?groupBy=day')
  t.match(byDay.groups, [{ messages: sumOf(ledger) }])
  const failing = await allRows('&result=fail')
  t.equal(sumOf(failing), sumOf(failed))
  const ofSource = await allRows(`&source=${source}`)
  t.equal(sumOf(ofSource), sumOf(ledger.filter((one) => one.source === source)))
})

t.test('reports: the sessions of TLS reports are those of the ledger [reports.read]', async (t) => {
  const sessions = counted.flatMap(({ content }) => ('tls' in content ? content.tls : []))
  const count = (some: typeof sessions) => some.reduce((sum, one) => sum + one.sessions, 0)
  const seen: TlsReports = await read('tls-reports?limit=100')
  const failed = count(sessions.filter(({ result }) => result !== ''))
  t.same(seen.totals, { sessions: count(sessions), succeeded: count(sessions) - failed, failed })
  t.equal(
    seen.reports.reduce((sum, one) => sum + one.sessions, 0),
    count(sessions),
  )
})

t.test('reports: the list of received reports, page by page [reports.received]', async (t) => {
  const reports: { reportId: string; authenticated: boolean }[] = []
  for (let after = ''; ; ) {
    const page = await read(`received-reports?limit=50${after}`)
    reports.push(...page.reports)
    if (page.next === null) break
    after = `&after=${page.next}`
  }
  t.equal(reports.length, 110)
  t.same(
    new Set(reports.filter(({ authenticated }) => authenticated).map(({ reportId }) => reportId)),
    new Set(counted.map(({ reportId }) => reportId)),
  )
})

t.test('reports: own addresses are marked, and their failures are counted [reports.read]', async (t) => {
  zone.set('out.service.example', {
    type: 'A',
    address: (ledger.find(({ dkim, spf }) => !dkim && !spf && true) ?? ledger[0])?.source as string,
  })
  await service.restart()
  const source = ledger.find(({ dkim, spf }) => !dkim && !spf)?.source as string
  if (source.includes(':')) zone.set('out.service.example', { type: 'AAAA', address: source })
  const of = ledger.filter((one) => one.source === source)
  const { totals }: Reports = await read('reports')
  t.equal(totals.ownFailed, sumOf(of.filter(({ dkim, spf }) => !dkim && !spf)))
  t.ok((await allRows(`&source=${source}`)).every(({ own }) => own))
})

t.test(
  'reports: a report of another domain, a huge one and a mail without DNS [reports.other-domain] [reports.bounds]',
  async (t) => {
    const [sample] = genuine.slice(-1) as [ReportSample]
    const dialog = await openDialog(service.config.mxPort)
    await dialog.say('EHLO mx.reporter.example')
    t.match(await sayMail(dialog, otherAddress, reportMail(sample, otherAddress, { isSigned: true })), /^250/)
    const none = await service.call(`GET /v1/domains/${other.domainId}/received-reports`, { token })
    t.same(none.json.reports, [])
    const bomb = {
      ...sample,
      reportId: 'bomb',
      file: gzipSync(Buffer.concat([Buffer.from('<feedback>'), Buffer.alloc(101 * 1024 * 1024, ' ')])),
    }
    t.match(await sayMail(dialog, address, reportMail(bomb, address, { isSigned: true })), /^552 5\.3\.4/)
    const packed = { ...sample, reportId: 'packed', file: Buffer.alloc(11 * 1024 * 1024, '<feedback>') }
    t.match(await sayMail(dialog, address, reportMail(packed, address, { isSigned: true })), /^552 5\.3\.4/)
    zone.fail(`_dmarc.${sample.reporter}`, 'servfail')
    zone.fail(`s._domainkey.${sample.reporter}`, 'servfail')
    const late = { ...sample, reportId: 'late', reporter: 'away.example' }
    zone.fail('s._domainkey.away.example', 'servfail')
    zone.fail('_dmarc.away.example', 'servfail')
    t.match(await sayMail(dialog, address, reportMail(late, address, { isSigned: true })), /^451 4\.7\.24/)
    dialog.end()
    const figure = async (kind: string) => {
      const { text } = await service.operate('GET /metrics')
      return Number(
        new RegExp(`^sendwright_received_total\\{kind="report_${kind}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0,
      )
    }
    t.equal(await figure('other_domain'), 1)
    t.equal(await figure('too_large'), 2)
  },
)

t.test('reports: another account sees nothing, and wrong queries are refused [reports.read]', async (t) => {
  const refused = async (path: string) =>
    (await service.call(`GET /v1/domains/${added.domainId}/${path}`, { token })).status
  t.equal(await refused('reports?from=2026-01-01T00:00:00Z&to=2026-11-01T00:00:00Z'), 400)
  t.equal(await refused('reports?source=nowhere'), 400)
  t.equal(await refused('reports?after=x'), 400)
  t.equal((await service.call(`GET /v1/domains/${account.accountId}/reports`, { token })).status, 404)
})

t.test('reports: they go with the domain [domain.remove]', async (t) => {
  t.equal((await service.call(`DELETE /v1/domains/${added.domainId}`, { token })).status, 204)
  t.equal((await service.call(`GET /v1/domains/${added.domainId}/reports`, { token })).status, 404)
  t.same(await redis.keys('*:report*'), [])
  const dialog = await openDialog(service.config.mxPort)
  await dialog.say('EHLO mx.reporter.example')
  await dialog.say('MAIL FROM:<>')
  t.match(await dialog.say(`RCPT TO:<${address}>`), /^550 5\.1\.1/)
  dialog.end()
})
