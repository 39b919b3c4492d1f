/**
 * machine - a machine with systemd for an installation, built from the root of this one or of another (debootstrap),
 * in separate namespaces: nothing that is done in it remains, and its network reaches no other host
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'

const BOOT_MS_MAX = 60_000
const RUN_MS_MAX = 300_000
const SPACES = ['--mount', '--pid', '--uts', '--ipc', '--cgroup']

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A machine that runs. */
export class Machine {
  private readonly child: ChildProcess
  private readonly pid: number
  private readonly folder: string

  private constructor(child: ChildProcess, pid: number, folder: string) {
    this.child = child
    this.pid = pid
    this.folder = folder
  }

  /** Boots one over the folder `lower`. Throws Error with the reason if this machine does not allow that. */
  static async boot(lower: string): Promise<Machine> {
    const folder = mkdtempSync(join(tmpdir(), 'sendwright-trial-'))
    const args = [...SPACES, '--net', '--fork', '--kill-child', 'sh', join(ROOT, 'test/trial/boot.sh'), lower, folder]
    const child = spawn('unshare', args, { stdio: ['ignore', 'ignore', 'pipe'] })
    // The end of this process ends the machine.
    process.once('exit', () => child.kill('SIGKILL'))
    let said = ''
    child.stderr?.on('data', (piece: Buffer) => (said = (said + piece).slice(-2_000)))
    child.once('error', (error) => (said = error.message))
    const give = (why: string): Error => {
      child.kill('SIGKILL')
      return new Error(`no machine can be booted here: ${why} ${said}`.trim())
    }
    const first = await until(() => firstProcess(child), BOOT_MS_MAX).catch(() => null)
    if (first === null || child.exitCode !== null) throw give('it ends at once.')
    const machine = new Machine(child, first, folder)
    await until(async () => {
      if (child.exitCode !== null) return true
      return /^(running|degraded)/.test((await machine.run('systemctl is-system-running')).out)
    }, BOOT_MS_MAX).catch(() => null)
    const state = await machine.run('systemctl is-system-running')
    if (!/^(running|degraded)/.test(state.out)) throw give(`it does not get up: ${state.out}${state.err}.`)
    return machine
  }

  /** Its root, seen from this machine. */
  get root(): string {
    return `/proc/${this.pid}/root`
  }

  /** Runs what a root types, in its home; `isOnline`: where packages can be fetched. */
  async run(code: string, { isOnline = false }: { isOnline?: boolean } = {}): Promise<Ran> {
    const spaces = [...SPACES, ...(isOnline ? [] : ['--net'])]
    const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    const all = Object.entries({ PATH: path, HOME: '/root', DEBIAN_FRONTEND: 'noninteractive' })
    const named = all.map(([name, value]) => `${name}=${value}`)
    const shell = ['/usr/bin/env', '-i', ...named, '/bin/bash', '-euc', `cd /root\n${code}`]
    const child = spawn('nsenter', ['--target', String(this.pid), ...spaces, ...shell], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: RUN_MS_MAX,
    })
    const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { out, err, code: status as number | null }
  }

  /** Starts a program of this machine on the network of the other. */
  onItsNetwork(command: readonly string[]): ChildProcess {
    const args = ['--target', String(this.pid), '--net', '/usr/bin/env', '-u', 'NODE_OPTIONS', ...command]
    return spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'inherit'] })
  }

  /** Ends it with all that runs in it. */
  async end(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill('SIGKILL')
      await once(this.child, 'exit')
    }
    rmdirSync(this.folder)
  }
}

/** The first process of the namespaces that a child has made, once it is systemd; null before that. */
function firstProcess({ pid, exitCode }: ChildProcess): number | null {
  if (pid === undefined || exitCode !== null) return null
  const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  if (!first) return null
  return readFileSync(`/proc/${first}/comm`, 'utf8').trim() === 'systemd' ? Number(first) : null
}
