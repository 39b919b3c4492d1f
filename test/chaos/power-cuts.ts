/**
 * power-cuts - the power of the whole machine is cut under load, again and again: the disk keeps what was synced, and
 * every message, batch and received mail that was acknowledged must be there after the next start
 *
 * Loads: sends with an Idempotency-Key that are repeated through the cut, batches with an attachment, received mail.
 * Some cuts happen during a rewrite of the append-only file, some during a backup, some within the first seconds of a
 * new installation. A control runs with DURABILITY=memory: it has to lose messages, or the disk cuts nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { mountPowerDisk, type PowerDisk } from '../support/machine/power-disk.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'
import { bareEnvironment, Scene, type Started } from '../support/mistakes/scene.ts'
import { openDialog } from '../support/peers/smtp-dialog.ts'
import { readLedgerFile } from './ledger-file.ts'

const DISK_MEGABYTES = 400
const WAIT_MS = 60_000
/** In-flight writes of frozen processes end within this. */
const SETTLE_MS = 100
const ATTACHMENT = randomBytes(90_000).toString('base64')
const MAIN = join(ROOT, 'build', 'src', 'cli', 'main.js')
const KINDS = ['plain', 'rewrite', 'backup', 'first run'] as const

export interface PowerCutsReport {
  readonly cuts: number
  readonly acknowledged: number
  readonly lost: number
  /** Keys with more than one message. */
  readonly doubled: number
  readonly batches: number
  readonly batchesLost: number
  readonly received: number
  readonly receivedLost: number
  /** Received mails whose content could not be read. */
  readonly receivedBroken: number
  readonly firstRuns: number
}

/** Cuts the power so many times. Rejects if a start after a cut fails. */
export async function runPowerCuts(options: {
  readonly cuts: number
  readonly random: () => number
  readonly say: (line: string) => void
}): Promise<PowerCutsReport> {
  const clear: (() => unknown)[] = []
  const owner = { teardown: (act: () => unknown) => void clear.unshift(act) }
  const disk = mountPowerDisk(DISK_MEGABYTES)
  owner.teardown(() => disk.unmount())
  try {
    return await cutAgainAndAgain(disk, owner, options)
  } finally {
    for (const act of clear) await act()
  }
}

async function cutAgainAndAgain(
  disk: PowerDisk,
  owner: { teardown(act: () => unknown): void },
  { cuts, random, say }: Parameters<typeof runPowerCuts>[0],
): Promise<PowerCutsReport> {
  const mxPort = 30_000 + Math.floor(random() * 20_000)
  const settings = { DATA_DIR: join(disk.dir, 'data'), CONTENT_STORE: 'file', MX_PORT: String(mxPort) }
  const scene = await Scene.make(owner, settings)
  let firstRuns = 0
  let service = await scene.start()
  const load = await scene.load(service)
  const others = await startOthers(scene, mxPort)
  for (let n = 0; n < cuts; n += 1) {
    const kind = KINDS[n % KINDS.length] as (typeof KINDS)[number]
    await load.passes(40)
    if (kind === 'first run') {
      await cutFirstRun(owner, random)
      firstRuns += 1
      continue
    }
    const besides = kind === 'plain' ? null : await begin(kind, scene, disk)
    await pause(random() * 1500)
    await cut(disk, scene, service, besides)
    service = await scene.start()
    say(
      `cut ${n + 1} (${kind}): ${load.acknowledged} acknowledged, ${others.batches.length} batches, ${others.mails.length} mails`,
    )
  }
  const ledger = await load.end()
  await others.end()
  const kept = await scene.lost()
  const told = await readLedgerFile(scene.ledgerPath)
  const found = await others.found()
  await service.kill('SIGTERM')
  const ids = new Map<string, Set<string>>()
  for (const { key, messageId } of told) ids.set(key, (ids.get(key) ?? new Set()).add(messageId))
  const doubled = [...ids.values(), ...ledger.told.values()].filter((of) => of.size > 1).length
  return { cuts, ...kept, doubled, ...found, firstRuns }
}

/** Cuts the power of a service: no part of it writes while the copy is taken. */
async function cut(
  disk: PowerDisk,
  scene: Scene,
  service: Started,
  besides: ChildProcess | null = null,
): Promise<void> {
  await disk.cut({
    async freeze() {
      // The service first, so that an answer of Redis that it has not read is never acknowledged.
      if (service.isRunning()) process.kill(service.pid, 'SIGSTOP')
      besides?.kill('SIGSTOP')
      for (const pid of scene.redisProcesses()) process.kill(pid, 'SIGSTOP')
      await pause(SETTLE_MS)
    },
    async end() {
      besides?.kill('SIGKILL')
      for (const pid of scene.redisProcesses()) process.kill(pid, 'SIGKILL')
      await Promise.all([service.kill('SIGKILL'), hasEnded(besides)])
      await until(() => scene.redisProcesses().length === 0, WAIT_MS)
    },
  })
}

async function hasEnded(child: ChildProcess | null): Promise<void> {
  if (child !== null && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** Begins a rewrite or a backup, which the cut interrupts. Returns the process to end, if there is one. */
async function begin(kind: 'rewrite' | 'backup', scene: Scene, disk: PowerDisk) {
  if (kind === 'rewrite') {
    const redis = scene.store()
    await redis.bgrewriteaof().catch(() => undefined)
    redis.disconnect()
    return null
  }
  const target = join(disk.dir, 'backup')
  if (existsSync(target)) rmSync(target, { recursive: true })
  const env = { ...bareEnvironment(), ...scene.settings }
  // Its working directory is not on the disk, which is unmounted.
  return spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', process.execPath, MAIN, 'backup', target], { env, cwd: '/' })
}

/** A new installation on its own disk: cut while it starts, it starts again. */
async function cutFirstRun(owner: { teardown(act: () => unknown): void }, random: () => number): Promise<void> {
  const disk = mountPowerDisk(100)
  owner.teardown(() => disk.unmount())
  const scene = await Scene.make(owner, { DATA_DIR: join(disk.dir, 'data') })
  const service = await scene.start({ ready: false })
  await pause(200 + random() * 1800)
  await cut(disk, scene, service)
  const again = await scene.start()
  const body = { from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'First', text: 'x' }
  const status = await scene.post('/v1/email', scene.firstRun.testServer.token, body)
  if (status !== 200) throw new Error(`After a cut of the first run a send answered ${status}`)
  await again.kill('SIGTERM')
}

interface Others {
  readonly batches: string[]
  readonly mails: string[]
  end(): Promise<void>
  found(): Promise<Pick<PowerCutsReport, 'batches' | 'batchesLost' | 'received' | 'receivedLost' | 'receivedBroken'>>
}

/** Batches with an attachment, and received mail, until the load ends. Unanswered ones are not recorded. */
async function startOthers(scene: Scene, mxPort: number): Promise<Others> {
  const { testServer, liveServer } = scene.firstRun
  const base = `http://127.0.0.1:${scene.settings.HTTP_PORT}`
  const call = async (path: string, token: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' }
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await fetch(`${base}${path}`, { ...init, signal: AbortSignal.timeout(10_000) })
    const text = await answer.text()
    return { status: answer.status, json: text === '' ? null : JSON.parse(text) }
  }
  const stream = await call('/v1/streams', liveServer.token, { kind: 'inbound', name: 'Mail' })
  const address: string = stream.json.inboundAddress
  const batches: string[] = []
  const mails: string[] = []
  let isOver = false
  const again = async (act: () => Promise<void>): Promise<void> => {
    while (!isOver) await act().catch(() => pause(100))
  }
  const sending = again(async () => {
    const message = (n: number) => ({
      from: 'you@simulator.test',
      to: [`batch${n}@simulator.test`],
      subject: 'Batch',
      text: 'x',
      attachments: [{ name: 'file.bin', contentType: 'application/octet-stream', content: ATTACHMENT }],
    })
    const { status, json } = await call('/v1/email/batch', testServer.token, { messages: [message(1), message(2)] })
    if (status === 200) for (const { messageId } of json.messages) batches.push(messageId)
    await pause(150)
  })
  const receiving = again(async () => {
    const dialog = await openDialog(mxPort)
    try {
      for (const line of ['EHLO x', 'MAIL FROM:<a@b.example>', `RCPT TO:<${address}>`, 'DATA']) await dialog.say(line)
      const said = await dialog.say(`Subject: Cut\r\n\r\nThe text.${'x'.repeat(70_000)}\r\n.`)
      const [, id] = /^250 .*accepted (\S+)/.exec(said) ?? []
      if (id !== undefined) mails.push(id)
    } finally {
      dialog.end()
    }
    await pause(150)
  })
  return {
    batches,
    mails,
    async end() {
      isOver = true
      await Promise.all([sending, receiving])
    },
    async found() {
      const missing = async (ids: readonly string[], path: string, token: string): Promise<number> => {
        let count = 0
        for (const id of ids) if ((await call(`${path}/${id}`, token)).status === 404) count += 1
        return count
      }
      const batchesLost = await missing(batches, '/v1/messages', testServer.token)
      const receivedLost = await missing(mails, '/v1/inbound', liveServer.token)
      let receivedBroken = 0
      for (const id of mails) {
        const isRead = async () => {
          const { status, json } = await call(`/v1/inbound/${id}`, liveServer.token)
          return status !== 200 || json.text?.startsWith('The text.') === true
        }
        await until(isRead, WAIT_MS).catch(() => undefined)
        if ((await call(`/v1/inbound/${id}`, liveServer.token)).json?.text?.startsWith('The text.') !== true)
          receivedBroken += 1
      }
      return { batches: batches.length, batchesLost, received: mails.length, receivedLost, receivedBroken }
    },
  }
}

/** The control: messages that were acknowledged from memory alone and are lost. 0 means that the disk does not cut. */
export async function lostByMemory(say: (line: string) => void): Promise<number> {
  const clear: (() => unknown)[] = []
  const owner = { teardown: (act: () => unknown) => void clear.unshift(act) }
  const disk = mountPowerDisk(100)
  owner.teardown(() => disk.unmount())
  try {
    const scene = await Scene.make(owner, { DATA_DIR: join(disk.dir, 'data'), DURABILITY: 'memory' })
    const service = await scene.start()
    const load = await scene.load(service)
    await load.passes(200)
    await cut(disk, scene, service)
    const again = await scene.start()
    await load.end()
    const { lost, acknowledged } = await scene.lost()
    say(`control: ${lost} of ${acknowledged} lost with DURABILITY=memory`)
    await again.kill('SIGTERM')
    return lost
  } finally {
    for (const act of clear) await act()
  }
}

/** The forbidden contents of a run's report. */
export function failuresOfPowerCuts(report: PowerCutsReport): string[] {
  const { lost, doubled, batchesLost, receivedLost, receivedBroken } = report
  const counts = { lost, doubled, batchesLost, receivedLost, receivedBroken }
  return Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`power cuts: ${name} ${count}`] : []))
}
