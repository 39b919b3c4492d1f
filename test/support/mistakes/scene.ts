/**
 * scene - a data directory, the service in real processes on it, clients that continue only when the 200 is on disk,
 * and the actions of an operator or a machine on it: the rig of test/mistakes.
 *
 * A case starts the service (`start`, `cluster`), lets clients send (`load`), makes its mistake, and asks for the
 * result: `lost` acknowledged messages, `redisProcesses` in the directory, the output `said` by the processes. A start
 * of the service takes over a second of the processor, so a store that was created once is copied (`copyOf`), and a
 * Redis alone reads the files on disk (`lostOnDisk` while it runs, `lostAlone` after a stop).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startEmbeddedRedis } from '../../../cluster/embedded/embedded.ts'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { wasMade } from '../../../src/store/installation.ts'
import { openLedgerFile, readLedgerFile } from '../../chaos/ledger-file.ts'
import { type Ledger, startLoad } from '../clients/ledger.ts'
import { messagesLogged } from '../clients/settle.ts'
import { freePort, freePorts } from '../machine/port.ts'
import { ROOT } from '../machine/root.ts'
import { until } from '../machine/until.ts'
import { raiseLimits } from '../service/crash-scene.ts'
import { MAIN, MAIN_ENV } from '../service/program.ts'

const WAIT_MS = 60_000
const SAID_CHARS_MAX = 16_000_000
/** The part of the output in the message of a failure. */
const SHOWN_CHARS = 3_000
const CLIENTS = 8
/** The pause of a client between two messages. The processor is for the service. */
const EVERY_MS = 20
const LOOK_MS = 25

/** A process of the service, or of several (`npm run cluster`). */
export interface Started {
  readonly pid: number
  readonly operatorPort: number
  readonly exited: Promise<number | null>
  isRunning(): boolean
  /** Its output so far. */
  said(): string
  kill(signal: NodeJS.Signals): Promise<number | null>
}

/** Clients that send all the while. */
export interface Sending {
  /** 200s until now. */
  readonly acknowledged: number
  /** Moment of the last 200, by `performance.now()`. */
  readonly lastAtMs: number
  passes(count: number): Promise<void>
  /** Begins no more messages. Resolves when each has its 200. */
  end(): Promise<Ledger>
}

export interface StartOptions {
  readonly settings?: Readonly<Record<string, string>>
  /** Waits until it answers that it is ready. True by default. */
  readonly ready?: boolean
  /** Another user than this one runs it. */
  readonly uid?: number
}

export class Scene {
  readonly top: string
  readonly dataDir: string
  readonly ledgerPath: string
  readonly settings: Record<string, string>
  private readonly started: ChildProcess[] = []
  private copies = 0
  private raised = false

  private constructor(settings: Record<string, string>, top: string) {
    this.top = top
    this.dataDir = settings.DATA_DIR as string
    this.ledgerPath = join(top, 'ledger')
    this.settings = settings
  }

  /** A separate directory and ports, with nothing running. It is removed with the test. */
  static async make(
    t: { teardown(act: () => unknown): void },
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Scene> {
    const top = realpathSync(mkdtempSync(join(process.env.STORES_DIR ?? tmpdir(), 'sendwright-mistake-')))
    const scene = new Scene(
      {
        DATA_DIR: join(top, 'data'),
        HTTP_PORT: String(await freePort()),
        OPERATOR_PORT: String(await freePort()),
        REDIS_PORT: String(await freePort()),
        MX_PORT: '0',
        SUBMISSION_PORT: '0',
        SUBMISSION_TLS_PORT: '0',
        EDGE_RATE: '0',
        LOG_LEVEL: 'info',
        ...settings,
      },
      top,
    )
    t.teardown(() => scene.clear())
    return scene
  }

  /** A scene with a copy of the directory of a stopped one, and its ledger. */
  static async copyOf(t: { teardown(act: () => unknown): void }, other: Scene): Promise<Scene> {
    const scene = await Scene.make(t)
    // A Redis that was killed has left its socket and its lock's.
    const filter = (path: string): boolean => !/^redis\.(sock|lock\.\d+)$/.test(basename(path))
    cpSync(other.dataDir, scene.dataDir, { recursive: true, filter })
    cpSync(other.ledgerPath, scene.ledgerPath)
    return scene
  }

  get socketPath(): string {
    return join(this.dataDir, 'redis.sock')
  }

  get firstRun(): FirstRun {
    return JSON.parse(readFileSync(join(this.dataDir, 'first-run.json'), 'utf8')) as FirstRun
  }

  /** `sendwright start`, by itself on the directory. */
  async start(options: StartOptions = {}): Promise<Started> {
    return await this.run([process.execPath, MAIN, 'start'], options)
  }

  /** `sendwright store` on the directory, once its Redis answers. */
  async keepStore(): Promise<Started> {
    const started = await this.run([process.execPath, MAIN, 'store', '--port', '0'], { ready: false })
    await hears(started, /Started redis|Adopted the running redis/)
    return started
  }

  /** `npm run cluster` with these counts, such as `redis=1`, `all=1`. */
  async cluster(counts: readonly string[], options: StartOptions = {}): Promise<Started> {
    const port = String(await freePorts(counts.length))
    const settings = { PORT: port, ...options.settings }
    return await this.run([process.execPath, join(ROOT, 'procfile.mjs'), ...counts], { ...options, settings })
  }

  /** Clients that send on the first account's test server, each 200 fsynced into the ledger. */
  async load(started: Started, everyMs = EVERY_MS): Promise<Sending> {
    const path = join(this.dataDir, 'first-run.json')
    await until(() => existsSync(path), WAIT_MS)
    const { firstRun } = this
    if (!this.raised) await raiseLimits(started.operatorPort, firstRun)
    this.raised = true
    const file = await openLedgerFile(this.ledgerPath)
    const seen = { acknowledged: 0, lastAtMs: 0 }
    const load = startLoad({
      port: Number(this.settings.HTTP_PORT),
      token: firstRun.testServer.token,
      clients: CLIENTS,
      everyMs,
      recipient: (n) => `person${n % 100}@example.com`,
      accepted(message) {
        seen.acknowledged += 1
        seen.lastAtMs = performance.now()
        return file.note(message)
      },
    })
    return {
      get acknowledged() {
        return seen.acknowledged
      },
      get lastAtMs() {
        return seen.lastAtMs
      },
      passes: (count) => load.passes(count),
      async end() {
        const ledger = await load.end()
        await file.close()
        return ledger
      },
    }
  }

  /** Status of a request to the public listener. */
  async post(path: string, token: string, body: object): Promise<number> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' }
    const url = `http://127.0.0.1:${this.settings.HTTP_PORT}${path}`
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    await answer.text()
    return answer.status
  }

  /** A connection to the store that ends with it. Pending commands are then rejected at once. */
  store(): Redis {
    const redis = new Redis({ path: this.socketPath, retryStrategy: () => null, autoResendUnfulfilledCommands: false })
    redis.on('error', () => undefined)
    return redis
  }

  /** The ledger's messages that the store does not hold, and their number. */
  async lost(): Promise<{ acknowledged: number; lost: number }> {
    return await this.lostIn(this.dataDir, await this.acknowledged())
  }

  /** The same for the files on disk while the service runs: a copy of them is loaded. */
  async lostOnDisk(): Promise<{ acknowledged: number; lost: number }> {
    const ids = await this.acknowledged()
    this.copies += 1
    const copy = join(this.top, `copy-${this.copies}`)
    cpSync(join(this.dataDir, 'appendonlydir'), join(copy, 'appendonlydir'), { recursive: true })
    return await this.lostAlone(copy, ids)
  }

  /**
   * The same if nothing runs: Redis is started as the service starts it. Throws the reason if such a start is refused.
   */
  async lostAlone(
    dataDir = this.dataDir,
    known?: ReadonlySet<string>,
  ): Promise<{ acknowledged: number; lost: number }> {
    const quiet = (): void => undefined
    const redis = await startEmbeddedRedis({
      dataDir,
      durability: 'fsync',
      log: { info: quiet, warn: quiet, error: quiet },
      onDown: quiet,
      onUp: quiet,
      mustHold: () => wasMade(dataDir),
    })
    try {
      return await this.lostIn(dataDir, known ?? (await this.acknowledged()))
    } finally {
      await redis.stop({ whenLast: async () => true })
    }
  }

  private async acknowledged(): Promise<ReadonlySet<string>> {
    return new Set((await readLedgerFile(this.ledgerPath)).map(({ messageId }) => messageId))
  }

  private async lostIn(dataDir: string, ids: ReadonlySet<string>): Promise<{ acknowledged: number; lost: number }> {
    const redis = new Redis({ path: join(dataDir, 'redis.sock') })
    try {
      const logged = await messagesLogged(redis)
      return { acknowledged: ids.size, lost: [...ids].filter((id) => !logged.has(id)).length }
    } finally {
      redis.disconnect()
    }
  }

  /** Ids of the redis processes that work in the directory, or did before it was deleted. */
  redisProcesses(): number[] {
    return redisIn(this.dataDir)
  }

  async clear(): Promise<void> {
    for (const child of this.started) if (child.exitCode === null) child.kill('SIGKILL')
    await Promise.all(
      this.started.map((child) => child.exitCode === null && child.signalCode === null && once(child, 'exit')),
    )
    await until(() => {
      const left = [...redisIn(this.top), ...redisIn(this.dataDir)]
      for (const pid of left) endProcess(pid)
      return left.length === 0
    }, WAIT_MS)
    rmSync(this.top, { recursive: true, force: true, maxRetries: 5 })
  }

  private async run(command: readonly string[], { settings = {}, ready = true, uid }: StartOptions): Promise<Started> {
    const env = { ...bareEnvironment(), ...MAIN_ENV, ...this.settings, ...settings }
    // The runner puts its loader into NODE_OPTIONS of every child. A separate process group has its own signals.
    const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', ...command], {
      cwd: this.top,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid !== undefined && { uid, gid: uid }),
    })
    this.started.push(child)
    let said = ''
    for (const output of [child.stdout, child.stderr])
      output.on('data', (piece: Buffer) => (said = (said + piece).slice(-SAID_CHARS_MAX)))
    const exited = once(child, 'close').then(([code]) => code as number | null)
    const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
    const operatorPort = Number(env.OPERATOR_PORT)
    const one: Started = {
      pid: child.pid as number,
      operatorPort,
      exited,
      isRunning,
      said: () => said,
      kill(signal) {
        if (isRunning()) child.kill(signal)
        return exited
      },
    }
    if (ready) await isReady(one)
    return one
  }
}

/** Resolves once a process reports that it is ready. Rejects when it ends. */
export async function isReady(started: Started): Promise<void> {
  await until(async () => {
    if (!started.isRunning()) throw new Error(`It ended: ${started.said()}`)
    if ((await readiness(started.operatorPort)) === 200) return true
    await pause(LOOK_MS)
    return false
  }, WAIT_MS)
}

/** The exit code of a process that ends by itself; rejects when it runs on. */
export async function endOf(started: Started): Promise<number | null> {
  await until(() => !started.isRunning(), WAIT_MS).catch(() => {
    throw new Error(`It runs on: ${started.said().slice(-SHOWN_CHARS)}`)
  })
  return await started.exited
}

/** Status of /readyz; 0 without an answer. */
export async function readiness(operatorPort: number): Promise<number> {
  const url = `http://127.0.0.1:${operatorPort}/readyz`
  const answer = await fetch(url, { headers: { connection: 'close' } }).catch(() => null)
  await answer?.text().catch(() => '')
  return answer?.status ?? 0
}

/**
 * Resolves when a process has printed text that matches `pattern`. The first `from` characters of its output do not
 * count.
 */
export async function hears(started: Started, pattern: RegExp, from = 0): Promise<string> {
  const found = await until(() => pattern.exec(started.said().slice(from)), WAIT_MS).catch(() => {
    throw new Error(`Never said: ${pattern}\n${started.said().slice(-SHOWN_CHARS)}`)
  })
  return found[0]
}

/** Without what a caller's shell may have set for the service itself. */
export function bareEnvironment(): Record<string, string> {
  const { PATH = '', HOME = '/' } = process.env
  return { PATH, HOME }
}

function redisIn(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        if (!/^(redis|valkey)-server/.test(readFileSync(`/proc/${pid}/comm`, 'utf8'))) return false
        const at = readlinkSync(`/proc/${pid}/cwd`)
        return at === directory || at.startsWith(`${directory}/`) || at === `${directory} (deleted)`
      } catch {
        return false // It ended between the listing and the look.
      }
    })
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}
