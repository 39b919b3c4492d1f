/** zone-file - records in the form of a zone file, read back by hand and, if it is installed, by BIND's checker. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { formatZone, quoteTxt, type ZoneFileRecord } from '../../src/mail/zone-file.ts'

const KEY = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`

/** The text that the strings of a TXT record make together. */
function unquote(value: string): string {
  const strings = [...value.matchAll(/"((?:\\.|[^"\\])*)"/g)].map(([, string = '']) => string)
  const bytes = strings.flatMap((string) =>
    [...string.matchAll(/\\(\d{3})|\\(.)|(.)/g)].map(([, code, escaped, plain]) =>
      code === undefined ? ((escaped ?? plain) as string).charCodeAt(0) : Number(code),
    ),
  )
  return Buffer.from(bytes).toString()
}

t.test('zone-file: a text longer than 255 bytes is split into several strings', (t) => {
  const strings = quoteTxt(KEY).match(/"[^"]*"/g) ?? []
  t.same(
    strings.map((string) => string.length - 2),
    [255, KEY.length - 255],
  )
  for (const text of [KEY, 'x'.repeat(255), 'x'.repeat(256), 'a "b" \\c', 'ü'.repeat(200), ''])
    t.equal(unquote(quoteTxt(text)), text)
  t.equal(quoteTxt('x'.repeat(255)), `"${'x'.repeat(255)}"`)
  t.equal(quoteTxt(''), '""')
  t.end()
})

const RECORDS: readonly ZoneFileRecord[] = [
  { host: 'out.svc.example', type: 'A', value: '192.0.2.7' },
  { host: 'out.svc.example', type: 'AAAA', value: '2001:db8::7' },
  { host: 'mx.svc.example', type: 'A', value: null, remark: 'public address of the machine' },
  { host: '*.rp.svc.example', type: 'MX', value: '10 mx.svc.example' },
  { host: 'sw-bounce.svc.example', type: 'CNAME', value: 'x.rp.svc.example' },
  { host: 'own._domainkey.svc.example', type: 'TXT', value: KEY },
]

t.test('zone-file: names are absolute, and an unknown value is a comment', (t) => {
  const lines = formatZone(RECORDS).trimEnd().split('\n')
  t.same(lines.slice(0, 5), [
    'out.svc.example. 3600 IN A 192.0.2.7',
    'out.svc.example. 3600 IN AAAA 2001:db8::7',
    '; mx.svc.example. 3600 IN A <public address of the machine>',
    '*.rp.svc.example. 3600 IN MX 10 mx.svc.example.',
    'sw-bounce.svc.example. 3600 IN CNAME x.rp.svc.example.',
  ])
  t.match(lines[5], /^own\._domainkey\.svc\.example\. 3600 IN TXT "v=DKIM1; /)
  t.equal(lines.length, 6)
  t.end()
})

t.test('zone-file: a name server reads it', async (t) => {
  const head = '@ 3600 IN SOA ns.svc.example. a.svc.example. 1 3600 600 86400 300\n@ 3600 IN NS ns.svc.example.\n'
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-zone-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const path = join(dir, 'zone')
  writeFileSync(path, `${head}ns 3600 IN A 192.0.2.1\nmx 3600 IN A 192.0.2.7\n${formatZone(RECORDS)}`)
  const { error, status, stdout } = spawnSync('named-checkzone', ['svc.example', path])
  if (error !== undefined) return t.comment('named-checkzone is not installed: skipped')
  t.equal(status, 0, String(stdout))
})
