/**
 * The files of the store are wrong when it is started: cut, other, older than they were, without their manifest, or
 * gone.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { readMark } from '../../../cluster/embedded/store-mark.ts'
import { until } from '../../support/machine/until.ts'
import { endOf, Scene } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000
const CUT_BYTES = 20_000

/** A store with mail in it that was stopped, after its files were rewritten twice. */
const stopped = await Scene.make(t)
/** Its files as they were before that. */
const backup = join(stopped.top, 'backup')
await makeStore()
/** The same a little later, killed together with its Redis. */
const killed = await Scene.copyOf(t, stopped)
await makeKilled()

async function makeStore(): Promise<void> {
  const service = await stopped.start()
  const load = await stopped.load(service)
  await load.passes(50)
  cpSync(folderOf(stopped), backup, { recursive: true })
  const redis = stopped.store()
  for (const written of ['.2.base.rdb', '.3.base.rdb']) {
    await redis.bgrewriteaof()
    await until(() => listing(stopped).some((line) => line.includes(written)), WAIT_MS)
    await load.passes(100)
  }
  redis.disconnect()
  await load.end()
  await service.kill('SIGTERM')
}

async function makeKilled(): Promise<void> {
  const service = await killed.start()
  const load = await killed.load(service)
  await load.passes(100)
  await load.end()
  // The amount of data from the last two seconds before a kill is unknown.
  const sentAt = new Date().toISOString()
  await until(() => (readMark(killed.dataDir)?.at ?? '') > sentAt, WAIT_MS)
  await service.kill('SIGKILL')
  for (const pid of killed.redisProcesses()) process.kill(pid, 'SIGKILL')
  await until(() => killed.redisProcesses().length === 0, WAIT_MS)
}

/** A start that is refused with a sentence, and leaves every file unchanged. Returns the sentence. */
async function refused(t: Test, scene: Scene, sentence: RegExp): Promise<string> {
  const before = listing(scene)
  const service = await scene.start({ ready: false })
  t.equal(await endOf(service), 1)
  t.match(service.said(), sentence)
  t.match(service.said(), /Redis was not started/)
  t.same(scene.redisProcesses(), [])
  t.same(listing(scene), before, 'every file is as it was')
  return service.said()
}

/** It starts again, and nothing is missing. */
async function isWhole(t: Test, scene: Scene): Promise<void> {
  const { acknowledged, lost } = await scene.lostAlone()
  t.ok(acknowledged >= 200)
  t.equal(lost, 0)
}

function folderOf({ dataDir }: Scene): string {
  return join(dataDir, 'appendonlydir')
}

function incrOf(scene: Scene): string {
  const names = readdirSync(folderOf(scene)).filter((name) => name.endsWith('.incr.aof'))
  return join(folderOf(scene), names.at(-1) as string)
}

function listing(scene: Scene): string[] {
  const folder = folderOf(scene)
  const names = readdirSync(scene.dataDir).includes('appendonlydir') ? readdirSync(folder) : []
  return names.map((name) => `${name} ${statSync(join(folder, name)).size}`).sort()
}

/** Runs the step between `then run: ` and `- and start again`, as an operator would copy it. */
function follow(said: string): void {
  const [, step = 'false'] = /then run: (.*?) - and start again/.exec(said) ?? []
  execFileSync('/bin/sh', ['-c', step])
}

for (const [how, fixture] of [
  ['a stop', stopped],
  ['a kill', killed],
] as const)
  t.test(`mistakes: a file that was cut after ${how} is refused, and accepted as it is on request`, async (t) => {
    const scene = await Scene.copyOf(t, fixture)
    const file = incrOf(scene)
    const { size } = statSync(file)
    cpSync(file, join(scene.top, 'whole'))
    truncateSync(file, size - CUT_BYTES)
    const said = await refused(
      t,
      scene,
      /incr\.aof has \d+ bytes, but had \d+ at .* are missing\. Restore the complete file/,
    )
    t.match(said, new RegExp(`the last ${how === 'a stop' ? CUT_BYTES : '\\d+'} bytes`))
    const [, step = 'false'] = /without the missing data: (rm -rf \S+ \S+)\. Redis/.exec(said) ?? []
    cpSync(join(scene.top, 'whole'), file)
    await isWhole(t, scene)
    truncateSync(file, Math.floor(statSync(file).size / 2))
    await t.rejects(scene.lostAlone(), { message: /are missing/ })
    execFileSync('/bin/sh', ['-c', step])
    const service = await scene.start()
    t.ok((await scene.lost()).lost > 0, 'as it was told')
    await service.kill('SIGTERM')
  })

t.test('mistakes: a file that was cut, and continued by a Redis that was started by hand, is refused', async (t) => {
  const scene = await Scene.copyOf(t, stopped)
  const file = incrOf(scene)
  const { size } = statSync(file)
  cpSync(file, join(scene.top, 'whole'))
  truncateSync(file, size - CUT_BYTES)
  const socket = join(scene.top, 'hand.sock')
  const args = ['--dir', scene.dataDir, '--port', '0', '--unixsocket', socket, '--appendonly', 'yes', '--save', '']
  const byHand = spawn('redis-server', args, { stdio: 'ignore' })
  const redis = new Redis({ path: socket })
  redis.on('error', () => undefined)
  await redis.set('written-on', Buffer.alloc(2 * CUT_BYTES))
  redis.disconnect()
  byHand.kill('SIGTERM')
  await once(byHand, 'exit')
  t.ok(statSync(file).size > size)
  await refused(t, scene, /incr\.aof has changed since .* was truncated and extended.* Restore the right file/)
  cpSync(join(scene.top, 'whole'), file)
  await isWhole(t, scene)
})

t.test('mistakes: a last write that was torn is no reason to refuse', async (t) => {
  const scene = await Scene.copyOf(t, killed)
  const file = incrOf(scene)
  const whole = readFileSync(file)
  // A write that was under way when the power went, after all that was known.
  const redis = whole.subarray(whole.lastIndexOf('*1\r\n$5\r\nMULTI'))
  const torn = redis.subarray(0, Math.floor(redis.length / 2))
  execFileSync('/bin/sh', ['-c', `cat >> ${file}`], { input: torn })
  await isWhole(t, scene)
})

t.test('mistakes: an older copy in a newer directory is refused; the printed step repairs it', async (t) => {
  const scene = await Scene.copyOf(t, stopped)
  cpSync(backup, folderOf(scene), { recursive: true })
  const said = await refused(
    t,
    scene,
    /incr\.aof, newer than the files of its manifest: an older copy replaced newer files/,
  )
  follow(said)
  await isWhole(t, scene)
})

t.test('mistakes: an older copy in place of a newer directory is refused with the missing files', async (t) => {
  const scene = await Scene.copyOf(t, stopped)
  const newer = join(scene.top, 'newer')
  renameSync(folderOf(scene), newer)
  cpSync(backup, folderOf(scene), { recursive: true })
  await refused(t, scene, /are an older copy: at .* they were .*\.3\.base\.rdb.*, now they are .*\.1\.base\.rdb/)
  rmSync(folderOf(scene), { recursive: true })
  renameSync(newer, folderOf(scene))
  await isWhole(t, scene)
})

t.test('mistakes: without its manifest a store is refused; the printed step repairs it', async (t) => {
  const scene = await Scene.copyOf(t, stopped)
  rmSync(join(folderOf(scene), 'appendonly.aof.manifest'))
  const said = await refused(t, scene, /append-only files but no manifest\. Their data is not lost/)
  follow(said)
  await isWhole(t, scene)
})

t.test('mistakes: without its appendonlydir a store is not created again', async (t) => {
  const scene = await Scene.copyOf(t, stopped)
  const elsewhere = join(scene.top, 'elsewhere')
  renameSync(folderOf(scene), elsewhere)
  await refused(t, scene, /had a store, but its append-only files are missing: Redis would start empty\. Restore/)
  renameSync(elsewhere, folderOf(scene))
  await isWhole(t, scene)
})
