/**
 * The process is ended with SIGKILL at each step of counting a report, and at random moments. Reporters send a report
 * again until it is answered with 250. Then each one is counted exactly once: the sums are those of the ledger.
 */
import t, { type Test } from 'tap'
import type { Reports, TlsReports } from '../../../../schemas/report/report.ts'
import { freePort } from '../../../support/machine/port.ts'
import { openDialog } from '../../../support/peers/smtp-dialog.ts'
import { startZone } from '../../../support/peers/zone.ts'
import { reportSamples } from '../../../support/reports/samples.ts'
import { publishReporter, reportMail, sayMail } from '../../../support/reports/send.ts'
import { type ReportSample, SAMPLE_DOMAIN } from '../../../support/reports/texts.ts'
import { startScene } from '../../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../../support/service/host.ts'
import type { CrashPoint } from '../../../support/store/crash-shard.ts'

const TRIES_MAX = 600
/** The report is committed, and its sender gets no answer. */
const POINT: CrashPoint = 'after count-report'
const OF_A_POINT = 8
const KILLS = Number(process.env.KILLS ?? 3)

t.jobs = 1
const zone = await startZone()
const scene = await startScene({
  CONTENT_STORE: 'file',
  MX_PORT: String(await freePort()),
  DNS_SERVERS: zone.server,
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
})
const { settings, firstRun } = scene
const port = Number(settings.MX_PORT)
let host: Host = scene.host
t.teardown(async () => {
  await host.kill('SIGKILL')
  await scene.end()
  await zone.close()
})

const headers = {
  authorization: `Bearer ${firstRun.account.token}`,
  'content-type': 'application/json',
  connection: 'close',
}
const api = `http://127.0.0.1:${settings.HTTP_PORT}/v1/domains`
const body = JSON.stringify({ domain: SAMPLE_DOMAIN })
const domain = (await (await fetch(api, { method: 'POST', headers, body })).json()) as {
  domainId: string
  recommended: { value: string }[]
}
const address = /rua=mailto:(\S+)$/.exec(domain.recommended[0]?.value ?? '')?.[1] as string
const genuine = reportSamples(Date.now()).filter(({ content }) => !('issue' in content))
for (const reporter of new Set(genuine.map((one) => one.reporter))) publishReporter(zone, reporter)
const counted: ReportSample[] = []

/** Sends a report until it is taken. Returns how often it was sent. */
async function insist(sample: ReportSample): Promise<number> {
  const raw = reportMail(sample, address, { isSigned: true })
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const reply = await once(raw).catch(() => '')
    if (reply.startsWith('250')) return tries
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`${sample.name} was never taken`)
}

async function once(raw: Buffer): Promise<string> {
  const dialog = await openDialog(port)
  try {
    await dialog.say('EHLO mx.reporter.example')
    return await sayMail(dialog, address, raw)
  } finally {
    dialog.end()
  }
}

async function check(t: Test): Promise<void> {
  const read = async <Answer>(path: string) =>
    (await (await fetch(`${api}/${domain.domainId}/${path}`, { headers })).json()) as Answer
  const dmarc = counted.flatMap(({ content }) => ('dmarc' in content ? content.dmarc : []))
  const tls = counted.flatMap(({ content }) => ('tls' in content ? content.tls : []))
  const { totals } = await read<Reports>('reports')
  t.equal(
    totals.messages,
    dmarc.reduce((sum, { messages }) => sum + messages, 0),
    'messages',
  )
  t.equal(
    totals.rejected,
    dmarc.reduce((sum, one) => sum + (one.disposition === 'reject' ? one.messages : 0), 0),
    'rejected',
  )
  const sessions = await read<TlsReports>('tls-reports')
  t.equal(
    sessions.totals.sessions,
    tls.reduce((sum, one) => sum + one.sessions, 0),
    'sessions',
  )
}

t.test(
  'crash: killed when a report is counted and not yet answered, each is counted once [reports.once]',
  async (t) => {
    await host.kill('SIGKILL')
    host = await startHost(settings, { point: POINT })
    const some = genuine.slice(0, OF_A_POINT)
    const restarted = host.exited.then(async () => {
      host = await startHost(settings)
    })
    let sent = 0
    for (const sample of some) sent += await insist(sample)
    await restarted
    t.ok(sent > some.length, 'a report was sent again')
    for (const sample of some) await insist(sample)
    counted.push(...some)
    await check(t)
  },
)

t.test(`crash: ${KILLS} kills at moments of chance, each report is counted once [reports.once]`, async (t) => {
  const some = genuine.slice(OF_A_POINT, OF_A_POINT + 36)
  const load = Promise.all(
    [0, 1, 2].map(async (lane) => {
      for (const [at, sample] of some.entries()) if (at % 3 === lane) await insist(sample)
    }),
  )
  for (let kill = 0; kill < KILLS; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, 300 + 500 * kill))
    await host.kill('SIGKILL')
    host = await startHost(settings)
  }
  await load
  counted.push(...some)
  await check(t)
})
