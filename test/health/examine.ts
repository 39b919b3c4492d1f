/**
 * examine - the whole of it through the operator's route and the command line: broken first, then mended as it says.
 */
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { EXAMINED, type Finding, type Health } from '../../schemas/operator/health.ts'
import { spawnNode } from '../support/machine/node.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone, type ZoneRecord } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sendwright-examine-'))
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
writeFileSync(join(folder, 'dkim.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
const zone = await startZone()
const mx = await startMx()
zone.set('gmail.com', { type: 'MX', exchange: 'mx.g.test', priority: 10 })
zone.set('mx.g.test', { type: 'A', address: '127.0.0.1' })
const service = await startTestService({
  DNS_SERVERS: zone.server,
  DELIVERY_PORT: String(mx.port),
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  SERVICE_DOMAIN: 'svc.acme.net',
  SMTP_HOSTNAME: 'out.svc.acme.net',
  SERVICE_DKIM: `own:${folder}/dkim.pem`,
})
const token = service.firstRun.operatorToken
t.teardown(async () => {
  await service.stop()
  await mx.close()
  await zone.close()
  rmSync(folder, { recursive: true })
})

async function doctor(...args: string[]) {
  const env = { PATH: process.env.PATH, DATA_DIR: service.dataDir }
  const child = spawnNode([MAIN, 'doctor', ...args], { env })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { out, err, code: code as number }
}

/** Does what a finding says: creates its record in the zone. */
function mend({ fix }: Finding): void {
  const [, host = '', type = '', value = ''] =
    /(?:Create the DNS record:|reverse DNS:) (\S+) (\w+) (.+)$/.exec(fix ?? '') ?? []
  const strings = value.replace(/^"|"$/g, '').replaceAll('" "', '')
  const records: Record<string, ZoneRecord> = {
    A: { type: 'A', address: strings.replace(/<.*>/, '127.0.0.1') },
    PTR: { type: 'PTR', domain: strings },
    MX: { type: 'MX', exchange: strings.split(' ')[1] ?? '', priority: 10 },
    TXT: { type: 'TXT', data: strings.match(/.{1,255}/g) ?? [] },
  }
  const known = asked.get(host) ?? []
  asked.set(host, [...known, records[type] as ZoneRecord])
  zone.set(host.replace('*', '0123456789abcdef'), ...(asked.get(host) as ZoneRecord[]))
}
const asked = new Map<string, ZoneRecord[]>()

t.test('health: what is said to mend it mends it, until nothing is broken [operator.health]', async (t) => {
  const seen = new Set<string>()
  let health: Health = { ok: false, findings: [], records: [] }
  for (let round = 0; round < 10 && !health.ok; round += 1) {
    const called = await service.operate('GET /v1/operator/health', { token })
    t.equal(called.status, 200)
    health = called.json
    t.same(
      health.findings.map(({ name }) => name),
      EXAMINED,
      'everything, in order',
    )
    for (const finding of health.findings) {
      if (finding.status === 'ok' || finding.name === 'clock' || finding.fix?.includes('TLS_CERT')) continue
      seen.add(finding.name)
      mend(finding)
    }
  }
  t.equal(health.ok, true)
  for (const name of ['ehlo-name', 'ptr', 'mx', 'return-path', 'spf', 'service-dkim', 'dmarc'])
    t.ok(seen.has(name), `${name} was broken`)
})

t.test('health: every record is told, and as a zone file [operator.health]', async (t) => {
  const { records } = (await service.operate('GET /v1/operator/health', { token })).json as Health
  t.match(
    records.map(({ host, type, value }) => `${host} ${type} ${value}`),
    [
      'out.svc.acme.net A 127.0.0.1',
      'mx.svc.acme.net A 127.0.0.1',
      'rp.svc.acme.net MX 10 mx.svc.acme.net',
      '*.rp.svc.acme.net MX 10 mx.svc.acme.net',
      'rp.svc.acme.net TXT v=spf1 ip4:127.0.0.1 -all',
      '*.rp.svc.acme.net TXT v=spf1 ip4:127.0.0.1 -all',
      'inbound.svc.acme.net MX 10 mx.svc.acme.net',
      /^own\._domainkey\.svc\.acme\.net TXT v=DKIM1; k=rsa; p=\w+/,
      '_dmarc.svc.acme.net TXT v=DMARC1; p=reject',
      '*._report._dmarc.rp.svc.acme.net TXT v=DMARC1',
    ],
  )
  const { out, code } = await doctor('--zone')
  t.equal(code, 0)
  t.match(out, /^out\.svc\.acme\.net\. 3600 IN A 127\.0\.0\.1$/m)
  t.match(out, /^own\._domainkey\.svc\.acme\.net\. 3600 IN TXT "v=DKIM1; k=rsa; p=[^"]{237}" "[^"]+"$/m)
  t.equal(out.trim().split('\n').length, records.length)
})

t.test('health: the command line prints it, and tells by its exit code [operator.health]', async (t) => {
  const fine = await doctor()
  t.equal(fine.code, 0, fine.err)
  t.match(fine.out, /^ok {3}store +Redis /)
  t.match(fine.out, /Nothing is broken\n$/)
  zone.remove('rp.svc.acme.net')
  const broken = await doctor()
  t.equal(broken.code, 1)
  t.match(
    broken.out,
    /^FAIL return-path +rp\.svc\.acme\.net has no MX\n +-> Create the DNS record: rp\.svc\.acme\.net MX 10 mx\.svc\.acme\.net$/m,
  )
  const json = await doctor('--json')
  t.equal(json.code, 1)
  t.equal(JSON.parse(json.out).ok, false)
  const refused = await doctor('--token', 'ok_nobody')
  t.equal(refused.code, 1)
  t.match(refused.err, /401 unauthorized/)
  t.equal((await service.operate('GET /v1/operator/health')).status, 401)
})
