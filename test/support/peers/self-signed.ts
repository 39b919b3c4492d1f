/** self-signed - a key and a certificate for `localhost` and `mx.test`, made by openssl once per test file. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** In: the number of days, more names. Null if openssl is not installed: the test reports it and is skipped. */
export function makeSelfSigned(days = 2, more: readonly string[] = []): { key: string; cert: string } | null {
  const alternatives = ['DNS:localhost', 'DNS:mx.test', 'IP:127.0.0.1', ...more.map((name) => `DNS:${name}`)]
  const folder = mkdtempSync(join(tmpdir(), 'self-signed-'))
  const names = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${alternatives.join(',')}`]
  const files = ['-keyout', join(folder, 'key'), '-out', join(folder, 'cert')]
  try {
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', String(days)]
    execFileSync('openssl', ['req', ...kind, ...names, ...files], { stdio: 'ignore' })
    return { key: readFileSync(join(folder, 'key'), 'utf8'), cert: readFileSync(join(folder, 'cert'), 'utf8') }
  } catch {
    return null
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
