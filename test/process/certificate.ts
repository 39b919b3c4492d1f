/** certificate - a certificate of our own: what it says, that it is kept, and when it is made anew. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { makeCertificate, openCertificate } from '../../src/process/certificate.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const DAY_MS = 86_400_000

t.test('self-signed: a certificate that holds for its name, signed with its own key', async (t) => {
  for (const [name, nowMs] of [
    ['mx.service.example', NOW_MS],
    [`${'a'.repeat(60)}.${'b'.repeat(60)}.example`, NOW_MS],
    ['late.example', Date.UTC(2045, 0, 1)],
    ['sendwright.localhost', NOW_MS],
  ] as const) {
    const { cert, key } = makeCertificate(name, nowMs)
    const parsed = new X509Certificate(cert)
    t.equal(parsed.checkHost(name), name)
    for (const local of ['localhost', 'sendwright.localhost']) t.equal(parsed.checkHost(local), local)
    for (const address of ['127.0.0.1', '::1']) t.equal(parsed.checkIP(address), address)
    t.equal(parsed.checkHost('other.example'), undefined)
    t.ok(parsed.verify(parsed.publicKey))
    t.ok(parsed.checkPrivateKey(createPrivateKey(key)))
    t.ok(Date.parse(parsed.validFrom) < nowMs)
    t.equal(Math.round((Date.parse(parsed.validTo) - nowMs) / DAY_MS), 3650)
  }
})

const SILENT = { error: () => undefined }

t.test('self-signed: kept in the data directory, its key for its owner alone', async (t) => {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'self-signed-')), 'data')
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const open = (name: string, nowMs = NOW_MS) =>
    openCertificate({ tlsCert: null, tlsKey: null, dataDir, name }, { nowMs, log: SILENT })
  const first = open('mx.example')
  t.equal(statSync(join(dataDir, 'tls-key.pem')).mode & 0o777, 0o600)
  t.same(open('mx.example'), first)
  t.same(open('mx.example', NOW_MS + 3600 * DAY_MS), first)
  t.not(open('mx.example', NOW_MS + 3640 * DAY_MS).cert, first.cert, 'it would end soon')
  t.not(open('other.example').cert, open('mx.example').cert, 'another name')
  writeFileSync(join(dataDir, 'tls-cert.pem'), 'broken')
  t.equal(new X509Certificate(open('mx.example').cert).checkHost('mx.example'), 'mx.example')
  const paths = { tlsCert: join(dataDir, 'tls-cert.pem'), tlsKey: join(dataDir, 'tls-key.pem') }
  const given = openCertificate(
    { ...paths, dataDir: '/nonexistent', name: 'x.example' },
    { nowMs: NOW_MS, log: SILENT },
  )
  t.equal(given.cert, readFileSync(paths.tlsCert, 'utf8'))
  const wrong: [string, string, RegExp][] = [
    [join(dataDir, 'none.pem'), paths.tlsKey, /^TLS_CERT: a readable file/],
    [paths.tlsKey, paths.tlsKey, /^TLS_CERT: a certificate in PEM/],
    [paths.tlsCert, paths.tlsCert, /^TLS_KEY: the private key of TLS_CERT/],
    [paths.tlsCert, join(dataDir, 'other.pem'), /^TLS_KEY: the private key of TLS_CERT/],
  ]
  writeFileSync(join(dataDir, 'other.pem'), makeCertificate('mx.example', NOW_MS).key)
  for (const [tlsCert, tlsKey, message] of wrong)
    t.throws(() => openCertificate({ tlsCert, tlsKey, dataDir, name: 'x.example' }, { nowMs: NOW_MS, log: SILENT }), {
      message,
    })
})

t.test('self-signed: a pair that a power cut left damaged is replaced, and logged', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'self-signed-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const logged: unknown[] = []
  const log = { error: (facts: object) => logged.push(facts) }
  const open = () =>
    openCertificate({ tlsCert: null, tlsKey: null, dataDir, name: 'mx.example' }, { nowMs: NOW_MS, log })
  const paths = { cert: join(dataDir, 'tls-cert.pem'), key: join(dataDir, 'tls-key.pem') }
  const first = open()
  t.same([first, logged], [{ cert: readFileSync(paths.cert, 'utf8'), key: readFileSync(paths.key, 'utf8') }, []])
  const damages: [string, string, string][] = [
    ['an empty key', paths.key, ''],
    ['a key of zeros', paths.key, '\0'.repeat(first.key.length)],
    ['half a key', paths.key, first.key.slice(0, 100)],
    ['the key of another pair', paths.key, makeCertificate('mx.example', NOW_MS).key],
    ['an empty certificate', paths.cert, ''],
    ['half a certificate', paths.cert, first.cert.slice(0, 100)],
  ]
  for (const [place, [what, path, text]] of damages.entries()) {
    writeFileSync(path, text)
    const { cert, key } = open()
    t.ok(new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)), what)
    t.equal(logged.length, place + 1, 'it is logged')
    t.same(open(), { cert, key }, 'the new pair is kept')
  }
})
