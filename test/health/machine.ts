/** machine - a disk with room, and certificates: none, right, wrong, ended. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { examineDisk, examineTls } from '../../src/health/machine.ts'
import { mountSmallDisk, SMALL_DISK_SKIP } from '../support/machine/small-disk.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'

const DAY_MS = 86_400_000
const MB = 1024 * 1024
const folder = mkdtempSync(join(tmpdir(), 'sendwright-machine-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const path = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

t.test('health: the disk has room, or it is said how much [operator.health]', async (t) => {
  const finding = await examineDisk(folder, true)
  t.match(finding.message, /^\d+\.\d GiB \(\d+ %\) are free under /)
  await t.rejects(examineDisk(join(folder, 'none'), true))
})

t.test(
  'health: a disk that refuses new mail says so where the store writes to it [operator.health]',
  { skip: SMALL_DISK_SKIP },
  async (t) => {
    const disk = mountSmallDisk(20 * MB)
    t.teardown(disk.unmount)
    t.match(await examineDisk(disk.dir, true), { status: 'ok' })
    writeFileSync(join(disk.dir, 'filler'), Buffer.alloc(18.5 * MB))
    t.match(await examineDisk(disk.dir, true), { status: 'failed', message: /: new mail is refused$/ })
    t.match(await examineDisk(disk.dir, false), { status: 'warning', message: /are free under \S+$/ })
  },
)

t.test('health: the certificate of the listeners [operator.health]', async (t) => {
  const [long, short] = [makeSelfSigned(90), makeSelfSigned()]
  if (long === null || short === null) return void t.pass('openssl is not installed')
  const names = { smtpHostname: 'localhost', serviceDomain: 'test' }
  const nowMs = Date.now() + 60_000
  const files = { tlsCert: path('cert.pem', long.cert), tlsKey: path('key.pem', long.key), ...names }
  t.match(examineTls(files, nowMs), { name: 'tls', status: 'ok', message: /valid for 89 more days/ })
  t.match(examineTls({ ...files, tlsCert: null, tlsKey: null }, nowMs), { status: 'warning', fix: /mx\.test/ })
  t.match(examineTls({ ...files, smtpHostname: 'out.test' }, nowMs), {
    status: 'warning',
    message: /not for out\.test/,
  })
  t.match(examineTls(files, nowMs + 80 * DAY_MS), { status: 'warning', message: /ends in 9 days/ })
  t.match(examineTls(files, nowMs + 91 * DAY_MS), { status: 'failed', fix: /Renew/ })
  t.match(examineTls(files, nowMs - DAY_MS), { status: 'failed', message: /valid from/ })
  const other = { ...files, tlsKey: path('other.pem', short.key) }
  t.match(examineTls(other, nowMs), { status: 'failed', message: /not the key/ })
  t.match(examineTls({ ...files, tlsCert: path('text.pem', 'none') }, nowMs), { status: 'failed', fix: /PEM/ })
  t.match(examineTls({ ...files, tlsKey: join(folder, 'none') }, nowMs), { status: 'failed', message: /ENOENT/ })
})
