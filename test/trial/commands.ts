/**
 * commands - what a root types on a machine of the trial, and what fetching packages needs there
 */
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Machine } from './machine.ts'

/** What needs packages of others is run where they can be fetched. */
const ONLINE = /^(?:apt-get|npm) /m
const CERTIFICATE = 'root/registry.pem'

export interface Place {
  readonly machine: Machine
  /** Whether the machine has nothing yet but a system. */
  readonly isEmpty: boolean
  say(line: string): void
}

/** What the registries need to be reached from another root: a certificate, where one is set here. */
export function equip({ root }: Machine): void {
  const bundle = process.env.NODE_EXTRA_CA_CERTS
  if (bundle !== undefined) copyFileSync(bundle, join(root, CERTIFICATE))
}

/** Runs a command of the documents. Out: what it prints. Throws Error with what it said where it fails. */
export async function must({ machine, isEmpty }: Place, code: string): Promise<string> {
  const isOnline = ONLINE.test(code)
  const ran = await machine.run(code, { isOnline, env: isOnline ? registryOf(isEmpty) : {} })
  if (ran.code === 0) return ran.out
  const log = await machine.run('journalctl --no-pager --lines=40 2>&1')
  throw new Error(`${code}\nended with ${ran.code}:\n${ran.out}${ran.err}\n${log.out}`)
}

/** The environment of a command that fetches packages: what npm is told here, and its cache on the same root. */
function registryOf(isEmpty: boolean): Record<string, string> {
  const { HOME = '/root', NODE_EXTRA_CA_CERTS } = process.env
  const own = Object.entries(process.env).filter(([name]) => name.startsWith('npm_config_'))
  const certificate = isEmpty ? `/${CERTIFICATE}` : NODE_EXTRA_CA_CERTS
  return {
    ...(isEmpty
      ? {}
      : { ...(Object.fromEntries(own) as Record<string, string>), HOME, npm_config_prefer_offline: 'true' }),
    ...(NODE_EXTRA_CA_CERTS !== undefined && certificate !== undefined && { NODE_EXTRA_CA_CERTS: certificate }),
  }
}
