/**
 * Permissions: a directory that is open to others, another user's directory, and a first start whose file is broken.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../support/machine/root.ts'
import { endOf, readiness, Scene } from '../../support/mistakes/scene.ts'

const isRoot = process.getuid?.() === 0
const NOBODY = 65_534
const skip = !isRoot
  ? 'only root can be another user'
  : mayReach(process.execPath) && mayReach(join(ROOT, 'package.json'))
    ? false
    : 'another user cannot read this checkout or Node'
const OTHERS = 0o077

/** Whether the other user gets to a file. */
function mayReach(path: string): boolean {
  return spawnSync('test', ['-r', path], { uid: NOBODY, gid: NOBODY }).status === 0
}

/** Files below a directory that others may read, write or enter. */
function openToOthers(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
  return [folder, ...names].filter((path) => (statSync(path).mode & OTHERS) !== 0)
}

t.test('mistakes: a data directory that is open to all users; nothing in it is, from the first start on', async (t) => {
  const scene = await Scene.make(t)
  mkdirSync(scene.dataDir)
  chmodSync(scene.dataDir, 0o755)
  for (const way of ['cluster', 'start'] as const) {
    const service = way === 'start' ? await scene.start() : await scene.cluster(['redis=1', 'all=1'])
    t.same(openToOthers(scene.dataDir), [], way)
    await service.kill('SIGTERM')
    t.same(openToOthers(scene.dataDir), [], `${way}, stopped`)
  }
  chmodSync(join(scene.dataDir, 'appendonlydir'), 0o755)
  for (const name of readdirSync(join(scene.dataDir, 'appendonlydir')))
    chmodSync(join(scene.dataDir, 'appendonlydir', name), 0o644)
  const service = await scene.start()
  t.same(openToOthers(scene.dataDir), [], 'mended')
  await service.kill('SIGTERM')
})

t.test('mistakes: another user runs it, loses nothing, and learns the owner of the directory', { skip }, async (t) => {
  const scene = await Scene.make(t)
  chownSync(scene.top, NOBODY, NOBODY)
  const service = await scene.start({ uid: NOBODY })
  const load = await scene.load(service)
  await load.passes(50)
  await load.end()
  await service.kill('SIGTERM')
  const again = await scene.cluster(['redis=1', 'all=1'], { uid: NOBODY })
  t.match(await scene.lost(), { lost: 0 })
  await again.kill('SIGTERM')
  const stranger = await scene.start({ uid: NOBODY - 1, ready: false })
  t.equal(await endOf(stranger), 1)
  t.match(stranger.said(), /data is closed to user 65533: start as its owner/)
  chmodSync(scene.top, 0o755)
  chmodSync(scene.dataDir, 0o755)
  const other = await scene.start({ uid: NOBODY - 1, ready: false })
  t.equal(await endOf(other), 1)
  t.match(other.said(), /belongs to user 65534, but this is user 65533: start as that user, change its owner/)
})

t.test('mistakes: a pending first start that is broken is named, and nothing is ready before it is done', async (t) => {
  const scene = await Scene.make(t)
  mkdirSync(scene.dataDir)
  const path = join(scene.dataDir, 'first-run.json.pending')
  writeFileSync(path, '{"operatorToken": "ok_')
  const service = await scene.start({ ready: false })
  t.equal(await endOf(service), 1)
  t.match(service.said(), new RegExp(`Cannot run: ${path} is damaged \\(.*\\): restore it from a backup, or remove it`))
  t.equal(await readiness(service.operatorPort), 0)
  t.same(scene.redisProcesses(), [])
})
