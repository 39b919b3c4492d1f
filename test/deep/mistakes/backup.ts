/**
 * A backup under load: the directory starts, and holds exactly the store at the copy point, which has everything
 * answered before, nothing submitted after, and of the time in between everything up to some message.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { withoutSum } from '../../../cluster/sum.ts'
import { readLedgerFile } from '../../chaos/ledger-file.ts'
import { messagesLogged, tornShards, uncertainRecipients } from '../../support/clients/settle.ts'
import { ROOT } from '../../support/machine/root.ts'
import { until } from '../../support/machine/until.ts'
import { bareEnvironment, Scene } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000
const MAIN = join(ROOT, 'build', 'src', 'cli', 'main.js')
/** More than Redis keeps of a message, packed too. */
const HTML = `<p>${randomBytes(100_000).toString('hex')}</p>`

async function command(scene: Scene, ...args: string[]) {
  const env = { ...bareEnvironment(), ...scene.settings }
  const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', process.execPath, MAIN, ...args], { env })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { out, err, code: code as number | null }
}

/** The installation of a copied directory, on its own ports. */
async function restored(t: Test, from: string): Promise<Scene> {
  const scene = await Scene.make(t)
  renameSync(from, scene.dataDir)
  return scene
}

async function sendLarge({ settings, firstRun }: Scene): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${settings.HTTP_PORT}/v1/email`, {
    method: 'POST',
    headers: { authorization: `Bearer ${firstRun.testServer.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ from: 'you@simulator.test', to: ['large@simulator.test'], subject: 'Large', html: HTML }),
  })
  return ((await answer.json()) as { messageId: string }).messageId
}

async function htmlOf({ settings, firstRun }: Scene, id: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${firstRun.testServer.token}`, connection: 'close' }
  const answer = await fetch(`http://127.0.0.1:${settings.HTTP_PORT}/v1/messages/${id}`, { headers })
  return ((await answer.json()) as { html?: unknown }).html
}

/** Answered messages by the ledger, and those that a store has logged, in the order of acceptance. */
async function idsIn(scene: Scene): Promise<string[]> {
  const redis = scene.store()
  try {
    return [...(await messagesLogged(redis))]
  } finally {
    redis.disconnect()
  }
}

async function answered({ ledgerPath }: Scene): Promise<string[]> {
  return (await readLedgerFile(ledgerPath)).map(({ messageId }) => messageId)
}

/** Recipients that the first account's test servers have used in this month and the one before. */
async function countedIn(redis: Redis, accountId: string): Promise<number> {
  const packed = (await redis.hget('{s000}:counters', `account:${accountId}`)) ?? '{}'
  const { testMonth = [] } = JSON.parse(withoutSum(packed, 'counters')) as { testMonth?: number[] }
  return (testMonth[1] ?? 0) + (testMonth[2] ?? 0)
}

t.test('backup: taken under load, it is the installation as it was at one moment, and starts', async (t) => {
  const scene = await Scene.make(t)
  const service = await scene.start()
  const large = await sendLarge(scene)
  const load = await scene.load(service)
  await load.passes(300)
  const before = await answered(scene)
  const target = join(scene.top, 'backup')
  const made = await command(scene, 'backup', target, '--json')
  t.equal(made.code, 0, made.err)
  const after = new Set(await answered(scene))
  await load.passes(200)
  await load.end()
  const all = await idsIn(scene)
  const told = JSON.parse(made.out)
  t.match(told, { directory: target, elsewhere: [], objects: 2 })
  t.ok(told.storeBytes > 0)
  t.equal(statSync(target).mode & 0o777, 0o700)
  t.same(
    readdirSync(target).filter((name) => /^(redis\.|store-|unreadable-end)/.test(name)),
    [],
    'nothing of one run alone',
  )

  t.match(await scene.lost(), { lost: 0 }, 'the one that was copied has lost nothing')
  // Its attempts are its own while it lives.
  await service.kill('SIGTERM')
  const copy = await restored(t, target)
  const again = await copy.start({ settings: { ROLES: 'all' } })
  const kept = await idsIn(copy)
  const late = (await answered(scene)).filter((id) => !after.has(id))
  t.ok(late.length >= 100, 'much came later')
  t.same(
    before.filter((id) => !kept.includes(id)),
    [],
    'all that was answered before',
  )
  t.same(kept, all.slice(0, kept.length), 'and then all up to some message')
  t.ok(kept.length < all.length, 'which is not the last')
  const redis = copy.store()
  await until(async () => (await uncertainRecipients(redis)).unclear.length === 0, WAIT_MS)
  t.equal(await countedIn(redis, copy.firstRun.account.accountId), kept.length, 'the counters say the same')
  t.equal(await tornShards(redis), 0)
  redis.disconnect()
  t.equal(await htmlOf(copy, large), HTML, 'large content is there, and its key')
  const body = { from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'New', text: 'It goes on.' }
  t.equal(await copy.post('/v1/email', copy.firstRun.testServer.token, body), 200)
  t.equal(await again.kill('SIGTERM'), 0)
})

t.test('backup: a folder keeps the newest backups; an archive can be started', async (t) => {
  const scene = await Scene.make(t)
  const service = await scene.start()
  const folder = join(scene.top, 'backups')
  mkdirSync(join(folder, 'mine'), { recursive: true })
  for (const day of ['20260101', '20260102', '20260103']) mkdirSync(join(folder, `sendwright-${day}T021000Z`))
  t.match(await command(scene, 'backup', folder, '--keep', '0'), { code: 1, err: /--keep: a number from 1/ })
  const kept = await command(scene, 'backup', folder, '--keep', '2', '--json')
  t.match(JSON.parse(kept.out).removed, ['sendwright-20260101T021000Z', 'sendwright-20260102T021000Z'])
  const names = readdirSync(folder).sort()
  t.match(names, ['mine', 'sendwright-20260103T021000Z', /^sendwright-20\d{6}T\d{9}Z$/])
  t.ok(Date.now() - statSync(join(scene.dataDir, 'last-backup')).mtimeMs < WAIT_MS, 'its time is recorded')
  const id = await sendLarge(scene)
  t.match(await command(scene, 'backup', '-', '--keep', '2'), { code: 1, err: /--keep: not with an archive/ })
  const archive = join(scene.top, 'archive.tar')
  const script = `"$0" "$1" backup - > "${archive}"`
  const env = { ...bareEnvironment(), ...scene.settings }
  const child = spawn('/bin/sh', ['-c', script, process.execPath, MAIN], { env })
  const [err, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
  t.equal(code, 0)
  t.match(err, /as it was at 20/)
  const cut = spawn(
    '/bin/bash',
    ['-o', 'pipefail', '-c', '"$0" "$1" backup - | head -c 100 >/dev/null', process.execPath, MAIN],
    { env },
  )
  const [[cutCode]] = await Promise.all([once(cut, 'close'), text(cut.stderr), text(cut.stdout)])
  t.not(cutCode, 0, 'a reader that ends early is an error')
  t.same(
    readdirSync(scene.dataDir).filter((name) => name.startsWith('.archive')),
    [],
    'and no copy is left',
  )
  t.equal(await service.kill('SIGTERM'), 0)
  const unpacked = join(scene.top, 'unpacked')
  mkdirSync(unpacked)
  const tar = spawn('tar', ['--extract', `--file=${archive}`, `--directory=${unpacked}`])
  t.same(await once(tar, 'close'), [0, null])
  const again = await restored(t, unpacked)
  const started = await again.start()
  t.equal(await htmlOf(again, id), HTML)
  t.equal(await started.kill('SIGTERM'), 0)
})

t.test('backup: of a store without a service; a backup that fails is reported, and leaves nothing', async (t) => {
  const scene = await Scene.make(t)
  t.match(await command(scene, 'backup', join(scene.top, 'none')), { code: 1, err: /No store in .*: set DATA_DIR/ })
  const service = await scene.start()
  t.equal(await service.kill('SIGTERM'), 0)
  mkdirSync(join(scene.dataDir, 'content', 'tmp'), { recursive: true })
  writeFileSync(join(scene.dataDir, 'content', 'tmp', 'half'), 'of something')
  const whole = join(scene.top, 'whole')
  t.match(await command(scene, 'backup', whole), { code: 0, err: '' })
  t.notOk(existsSync(join(whole, 'content', 'tmp')), 'what is half written is nobody’s')
  const target = join(scene.top, 'backup')
  const made = await command(scene, 'backup', target, '--no-content')
  t.match(made, { code: 0, err: /content are not included/, out: /installation [0-9a-f-]{36}, as it was at / })
  t.same(scene.redisProcesses(), [], 'its Redis has ended again')
  t.ok(existsSync(join(target, 'secret-key')))
  t.match(await command(scene, 'backup', target), { code: 1, err: /already exists: name a new directory/ })
  const closed = join(scene.top, 'file')
  writeFileSync(closed, '')
  t.match(await command(scene, 'backup', join(closed, 'backup')), { code: 1, err: /ENOTDIR|EEXIST/ })
  t.same(
    readdirSync(scene.top).filter((name) => name.endsWith('.new')),
    [],
  )
  const { lost } = await scene.lostAlone(target, new Set())
  t.equal(lost, 0, 'and it loads')
})
