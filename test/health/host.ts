/** host - what doctor finds of the machine: each setting right and wrong, from real files. */

import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { examineBackup, examineExposure, examineFsync, examineKernel, examineNode } from '../../src/health/host.ts'

const HOUR_MS = 3_600_000
const folder = mkdtempSync(join(tmpdir(), 'sendwright-host-'))
t.teardown(() => rmSync(folder, { recursive: true }))

t.test('health: kernel settings with which a fork of Redis fails or stalls [operator.health]', async (t) => {
  const set = (path: string, value: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), `${value}\n`)
  }
  set('proc/sys/vm/overcommit_memory', '0')
  set('sys/kernel/mm/transparent_hugepage/enabled', '[always] madvise never')
  const both = {
    status: 'warning',
    message: /overcommit_memory is 0.*; transparent huge pages/,
    fix: /sysctl.*madvise/,
  }
  t.match(examineKernel(true, folder), both)
  t.match(examineKernel(false, folder), { status: 'ok', message: /runs elsewhere/ })
  set('proc/sys/vm/overcommit_memory', '1')
  t.match(examineKernel(true, folder), { status: 'warning', message: /^transparent/ })
  set('sys/kernel/mm/transparent_hugepage/enabled', 'always [madvise] never')
  t.match(examineKernel(true, folder), { status: 'ok' })
  t.match(examineKernel(true, join(folder, 'none')), { status: 'ok' }, 'a kernel without these files')
})

t.test('health: an fsync is measured, and leaves no file [operator.health]', async (t) => {
  const before = readdirSync(folder)
  t.match(await examineFsync(folder), { message: /^An fsync under .* takes \d+\.\d ms$/ })
  t.same(readdirSync(folder), before)
  await t.rejects(examineFsync(join(folder, 'none')))
})

t.test('health: the support of a release of Node.js [operator.health]', async (t) => {
  const at = Date.parse('2027-02-15')
  t.match(examineNode('v20.20.1', at), { status: 'warning', message: /gets no security fixes since 2026-04-30/ })
  t.match(examineNode('v22.9.0', at), { status: 'warning', message: /until 2027-04-30 only/ })
  t.match(examineNode('v24.1.0', at), { status: 'ok', message: /supported until 2028/ })
  t.match(examineNode('v25.1.0', at), { status: 'ok', message: 'Node.js v25.1.0' })
})

t.test('health: the age of the last backup [operator.health]', async (t) => {
  const nowMs = Date.now()
  t.match(examineBackup(folder, nowMs), { status: 'warning', message: /No backup was recorded/ })
  writeFileSync(join(folder, 'last-backup'), '')
  t.match(examineBackup(folder, nowMs), { status: 'ok', message: /is 0 hours old/ })
  const old = (nowMs - 40 * HOUR_MS) / 1000
  utimesSync(join(folder, 'last-backup'), old, old)
  t.match(examineBackup(folder, nowMs), { status: 'warning', message: /is 40 hours old/, fix: /every night/ })
})

t.test('health: listeners that strangers reach [operator.health]', async (t) => {
  const good = {
    operatorHost: '127.0.0.1',
    operatorPort: 8081,
    httpHost: '127.0.0.1',
    httpPort: 8080,
    baseUrl: 'https://api.acme.test',
    trustedProxies: ['127.0.0.1/32'],
    roles: ['http' as const],
  }
  t.match(examineExposure(good), { status: 'ok' })
  for (const [changes, found] of [
    [{ trustedProxies: ['10.0.0.0/8', '0.0.0.0/0'] }, { status: 'failed', message: /^TRUSTED_PROXIES contains 0/ }],
    [{ trustedProxies: ['::/0'] }, { status: 'failed' }],
    [{ operatorHost: '8.8.8.8' }, { status: 'failed', message: /public address 8\.8\.8\.8/ }],
    [{ operatorHost: '0.0.0.0' }, { status: 'warning', message: /on all addresses/ }],
    [{ operatorHost: '0.0.0.0', operatorPort: 0 }, { status: 'ok' }],
    [{ operatorHost: '10.1.2.3' }, { status: 'ok' }],
    [{ operatorHost: 'localhost' }, { status: 'ok' }],
    [
      { httpHost: '2001:4860:4860::8888', trustedProxies: [] },
      { status: 'warning', message: /^The API is on/ },
    ],
    [{ httpHost: '2001:4860:4860::8888', trustedProxies: [], roles: ['mx'] }, { status: 'ok' }],
    [{ baseUrl: 'http://api.acme.test' }, { status: 'warning', message: /^BASE_URL is/ }],
    [{ baseUrl: 'http://127.0.0.1:8080' }, { status: 'ok' }],
    [{ baseUrl: 'http://[::1]:8080' }, { status: 'ok' }],
    [{ baseUrl: 'http://sendwright.localhost:8080' }, { status: 'ok' }],
  ] as const)
    t.match(examineExposure({ ...good, ...changes }), found, JSON.stringify(changes))
})
