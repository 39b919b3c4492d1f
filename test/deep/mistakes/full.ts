/**
 * A store that fills up, and a full disk: the refusals and their reason are shown in every place that an operator
 * checks.
 */
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../support/machine/root.ts'
import { mountSmallDisk, SMALL_DISK_SKIP } from '../../support/machine/small-disk.ts'
import { until } from '../../support/machine/until.ts'
import { hears, isReady, Scene, type Started } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000
const MB = 1024 * 1024
const MEMORY_MB = 128
/** With what Redis puts before it, one of its sizes of memory. */
const PIECE = Buffer.alloc(MB - 64)
/** Lines that a service may write while its disk is full for some seconds. */
const LINES_MAX = 120
/** Lines of refused requests in any second, the one that counts the others included. */
const REFUSED_A_SECOND = 51
const BODY = { from: 'you@simulator.test', to: ['someone@simulator.test'], subject: 'Hello', text: 'It works.' }
// They wait for looks most of the time.
t.jobs = 3

void t.test(
  'mistakes: a store that fills up is announced, refuses, reports it, and accepts mail again',
  { buffered: true },
  async (t) => {
    const scene = await Scene.make(t, { REDIS_MAXMEMORY: `${MEMORY_MB}mb` })
    const service = await scene.start()
    const { token } = scene.firstRun.testServer
    const send = () => scene.post('/v1/email', token, BODY)
    const redis = scene.store()
    t.teardown(() => redis.disconnect())
    const fillTo = async (share: number): Promise<void> => {
      const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
      const pieces = Math.ceil((share * MEMORY_MB * MB - used) / PIECE.length)
      for (let piece = 0; piece < pieces; piece += 1) await redis.set(`ballast:${share}:${piece}`, PIECE)
    }
    await fillTo(0.75)
    await hears(service, /Store fills up: from 85 % on new mail is refused/)
    t.equal(await send(), 200)
    t.match(await doctor(scene), /^WARN store +7\d % of maxmemory is used; from 85 % on new mail is refused$/m)
    await fillTo(0.9)
    await hears(service, /Store is nearly full: new mail is refused/)
    await until(async () => (await send()) === 503, WAIT_MS)
    t.match(await operatorPage(service, '/readyz'), /^not ready: the store is nearly full \(\d\d % of its maxmemory\)/)
    t.match(await operatorPage(service, '/metrics'), /^sendwright_sends_not_taken_total\{why="memory"\} [1-9]/m)
    t.match(await doctor(scene), /^FAIL store .*: new mail is refused\n +-> Set REDIS_MAXMEMORY to 256mb/m)
    await redis.del(await redis.keys('ballast:*'))
    await hears(service, /Store has room again/)
    t.equal(await send(), 200)
    await isReady(service)
    t.equal(await service.kill('SIGTERM'), 0)
  },
)

void t.test(
  'mistakes: a full disk ends Redis, and is named; nothing acknowledged is lost, and no line is repeated endlessly',
  { buffered: true, skip: SMALL_DISK_SKIP },
  async (t) => {
    const disk = mountSmallDisk(32 * MB)
    t.teardown(disk.unmount)
    const scene = await Scene.make(t, { DATA_DIR: join(disk.dir, 'data') })
    const service = await scene.start()
    const startedAtMs = performance.now()
    const load = await scene.load(service)
    await load.passes(100)
    const filler = join(disk.dir, 'filler')
    t.throws(() => writeFileSync(filler, Buffer.alloc(32 * MB)), { code: 'ENOSPC' })
    await hears(service, /disk is nearly full: new mail is refused/)
    t.match(await operatorPage(service, '/readyz'), /^not ready: /)
    await hears(service, /Its disk is full: \d+ bytes are free under \S+data/)
    rmSync(filler)
    await isReady(service)
    await load.passes(50)
    await load.end()
    t.match(await scene.lost(), { lost: 0 })
    t.match(await operatorPage(service, '/metrics'), /^sendwright_sends_not_taken_total\{why="disk"\} [1-9]/m)
    const lines = service.said().split('\n')
    const refused = lines.filter((line) => /Requests? (?:was |were )?refused/.test(line)).length
    const seconds = Math.ceil((performance.now() - startedAtMs) / 1000)
    t.ok(refused <= REFUSED_A_SECOND * (seconds + 1), `${refused} lines of refused requests in ${seconds} s`)
    const ended = lines.filter((line) => line.includes('Recipient ended')).length
    t.ok(ended <= load.acknowledged, `${ended} lines of recipients that ended, of ${load.acknowledged}`)
    // Lines about its work are counted separately, because the others describe faults.
    const others = lines.length - refused - ended
    t.ok(others < LINES_MAX, `${others} lines`)
    t.equal(await service.kill('SIGTERM'), 0)
    t.match(await scene.lostAlone(), { lost: 0 })
  },
)

void t.test(
  'mistakes: the disk of a cluster is nearly full; the HTTP process refuses mail though another process runs Redis',
  { buffered: true, skip: SMALL_DISK_SKIP },
  async (t) => {
    const disk = mountSmallDisk(32 * MB)
    t.teardown(disk.unmount)
    const scene = await Scene.make(t, { DATA_DIR: join(disk.dir, 'data') })
    const service = await scene.cluster(['redis=1', 'all=1'])
    const { token } = scene.firstRun.testServer
    t.equal(await scene.post('/v1/email', token, BODY), 200)
    const filler = join(disk.dir, 'filler')
    writeFileSync(filler, Buffer.alloc(30 * MB))
    await hears(service, /all .*The store's disk is nearly full: new mail is refused/)
    t.equal(await scene.post('/v1/email', token, BODY), 503)
    t.match(await operatorPage(service, '/readyz'), /^not ready: the disk is nearly full: new mail is refused$/m)
    rmSync(filler)
    await isReady(service)
    t.equal(await scene.post('/v1/email', token, BODY), 200)
    t.equal(await service.kill('SIGTERM'), 0)
  },
)

async function operatorPage({ operatorPort }: Started, path: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${operatorPort}${path}`, { headers: { connection: 'close' } })
  return await answer.text()
}

/** The output of `sendwright doctor`. It fails because the DNS records do not exist here. */
function doctor({ settings }: Scene): string {
  const env = { PATH: process.env.PATH, DATA_DIR: settings.DATA_DIR, OPERATOR_PORT: settings.OPERATOR_PORT }
  const args = ['-u', 'NODE_OPTIONS', process.execPath, join(ROOT, 'build/src/cli/main.js'), 'doctor']
  try {
    return execFileSync('/usr/bin/env', args, { env, encoding: 'utf8' })
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}
