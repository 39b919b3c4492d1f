/**
 * signed-zones - zones that nsd serves, signed by ldns, and unbound as the resolver that validates them. It forwards
 * every other name to another name server, without validation.
 */

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../machine/port.ts'

export interface SignedZone {
  readonly name: string
  /** Lines of the zone file; names are relative to the zone. */
  readonly records: readonly string[]
  /** Changes the signed file, as an attacker would. */
  readonly forge?: (text: string) => string
}

export interface ValidatingResolver {
  /** `127.0.0.1:port`. */
  readonly server: string
  close(): Promise<void>
}

/** Whether the programs are installed. */
export function hasSigners(): boolean {
  try {
    for (const program of ['unbound', 'nsd', 'ldns-signzone'])
      execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Starts both. `otherServer` (`ip:port`) answers for the names outside of the zones. */
export async function startSignedZones(zones: readonly SignedZone[], otherServer: string): Promise<ValidatingResolver> {
  const folder = mkdtempSync(join(tmpdir(), 'signed-zones-'))
  const at = (file: string) => join(folder, file)
  const anchors = zones.map((zone) => sign(folder, zone))
  const [authority, port] = [await freePort(), await freePort()]
  writeFileSync(at('nsd.conf'), nsdConfig(zones, { folder, port: authority }))
  writeFileSync(at('unbound.conf'), unboundConfig(zones, { anchors, folder, authority, port, otherServer }))
  const children = [
    spawn('nsd', ['-d', '-c', at('nsd.conf')], { stdio: 'ignore' }),
    spawn('unbound', ['-d', '-c', at('unbound.conf')], { stdio: 'ignore' }),
  ]
  return {
    server: `127.0.0.1:${port}`,
    async close() {
      const ended = children.map((child) => new Promise((resolve) => child.once('exit', resolve)))
      for (const child of children) child.kill()
      await Promise.all(ended)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Signs a zone. Returns the record of its key. */
function sign(folder: string, { name, records, forge = (text) => text }: SignedZone): string {
  const run = (...[program, ...args]: [string, ...string[]]) => execFileSync(program, args, { cwd: folder })
  const head = [`$ORIGIN ${name}.`, '$TTL 60', '@ SOA ns hostmaster 1 3600 600 86400 60', '@ NS ns', 'ns A 127.0.0.1']
  writeFileSync(join(folder, name), [...head, ...records, ''].join('\n'))
  const key = run('ldns-keygen', '-a', 'ECDSAP256SHA256', '-k', name).toString().trim()
  run('ldns-signzone', '-f', `${name}.signed`, name, key)
  const signed = join(folder, `${name}.signed`)
  writeFileSync(signed, forge(readFileSync(signed, 'utf8')))
  const file = readdirSync(folder).find((one) => one === `${key}.key`) as string
  return readFileSync(join(folder, file), 'utf8').trim()
}

function nsdConfig(zones: readonly SignedZone[], { folder, port }: { folder: string; port: number }): string {
  const files = ['zonelistfile', 'xfrdfile', 'pidfile'].map((name) => `  ${name}: "${join(folder, `nsd.${name}`)}"`)
  const server = [`  ip-address: 127.0.0.1@${port}`, '  username: ""', `  zonesdir: "${folder}"`, ...files]
  const served = zones.map(({ name }) => `zone:\n  name: "${name}"\n  zonefile: "${name}.signed"\n`)
  return `server:\n${server.join('\n')}\n  server-count: 1\nremote-control:\n  control-enable: no\n${served.join('')}`
}

interface UnboundPlaces {
  readonly anchors: readonly string[]
  readonly folder: string
  readonly authority: number
  readonly port: number
  readonly otherServer: string
}

function unboundConfig(
  zones: readonly SignedZone[],
  { anchors, folder, authority, port, otherServer }: UnboundPlaces,
): string {
  const server = [
    `interface: 127.0.0.1@${port}`,
    'username: ""',
    'chroot: ""',
    `directory: "${folder}"`,
    `pidfile: "${join(folder, 'unbound.pid')}"`,
    'use-syslog: no',
    'do-not-query-localhost: no',
    'do-ip6: no',
    'module-config: "validator iterator"',
    'cache-max-ttl: 0',
    'cache-max-negative-ttl: 0',
    'local-zone: "test." nodefault',
    ...anchors.map((anchor) => `trust-anchor: "${anchor.replaceAll('\t', ' ').split(' ;')[0]}"`),
  ]
  const stubs = zones.map(({ name }) => `stub-zone:\n  name: "${name}"\n  stub-addr: 127.0.0.1@${authority}\n`)
  const forward = `forward-zone:\n  name: "."\n  forward-addr: ${otherServer.replace(':', '@')}\n`
  return `server:\n${server.map((line) => `  ${line}\n`).join('')}${stubs.join('')}${forward}`
}
