/**
 * files: a file reported as written is complete and on disk in the right order. A full or read-only disk loses
 * nothing.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type ContentAct, type Contents, makeContents } from '../../src/content/contents.ts'
import { type DiskSpace, keptFree, watchDisk } from '../../src/content/disk-space.ts'
import { makeFileHome } from '../../src/content/files.ts'
import { makeFolderSync } from '../../src/content/folder-sync.ts'
import { FRAME_BYTES } from '../../src/content/frame.ts'
import { mountSmallDisk, SMALL_DISK_SKIP } from '../support/machine/small-disk.ts'
import { until } from '../support/machine/until.ts'

const MB = 1024 * 1024
const NAME = '007/out/20261122/aaaaaaaaaaaaaaaaaa-0.files'
const mailKey = randomBytes(32)
const quiet = { info: () => undefined, warn: () => undefined }

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-content-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function store(
  root: string,
  { room = null, syncFolder }: { room?: DiskSpace | null; syncFolder?: (path: string) => Promise<void> } = {},
) {
  const acts: ContentAct[] = []
  const home = makeFileHome(root, { worker: () => 'me', ...(syncFolder && { syncFolder }) })
  const contents = makeContents({ home, room, told: (act) => acts.push(act), warn: () => undefined })
  return { contents, acts, home }
}

function put(contents: Contents, bytes: Buffer, names: readonly string[] = [NAME]) {
  return contents.put({ names, mailKey, kind: 'files', source: [bytes], bytesMax: bytes.length })
}

function read(contents: Contents, name = NAME) {
  return contents.read({ name, mailKey, kind: 'files' })
}

function filesIn(root: string): string[] {
  if (!existsSync(root)) return []
  return (readdirSync(root, { recursive: true, encoding: 'utf8' }) as string[]).filter((name) =>
    statSync(join(root, name)).isFile(),
  )
}

t.test('files: written, read whole and in part, removed, and removed again', async (t) => {
  const root = join(folder(t), 'content')
  const { contents, acts } = store(root)
  const bytes = randomBytes(3 * FRAME_BYTES + 5)
  t.same(await put(contents, bytes), { ok: true })
  t.same(filesIn(root), [NAME], 'nothing unfinished is left')
  t.equal(statSync(join(root, NAME)).mode & 0o777, 0o600)
  t.equal(statSync(root).mode & 0o777, 0o700)
  const found = await read(contents)
  t.ok(Buffer.isBuffer(found) && found.equals(bytes))
  const part = await contents.get({ name: NAME, mailKey, kind: 'files', span: { from: FRAME_BYTES - 1, length: 2 } })
  t.match(part, { kind: 'there', size: bytes.length, length: 2 })
  t.equal(
    (await contents.get({ name: NAME, mailKey, kind: 'files', span: { from: bytes.length + 1, length: null } })).kind,
    'outside',
  )
  t.ok(await contents.remove([NAME]))
  t.ok(await contents.remove([NAME]))
  t.equal(await read(contents), 'gone')
  t.same(
    acts.map(({ act, result }) => `${act} ${result}`),
    ['put ok', 'get ok', 'get ok', 'get outside', 'remove ok', 'remove ok', 'get gone'],
  )
})

t.test('files: several names share one file, and each is removed alone', async (t) => {
  const root = join(folder(t), 'content')
  const { contents } = store(root)
  const names = ['001/in/20261122/a', '001/in/20261122/b', '002/in/20261122/c']
  const bytes = randomBytes(100_000)
  await put(contents, bytes, names)
  t.equal(new Set(names.map((name) => statSync(join(root, name)).ino)).size, 1)
  await contents.remove([names[0] as string])
  const found = await read(contents, names[2])
  t.ok(Buffer.isBuffer(found) && found.equals(bytes))
})

t.test('files: bytes on disk, then the name, then its directories, then the report', async (t) => {
  const root = join(folder(t), 'content')
  const steps: string[] = []
  const { contents } = store(root, {
    syncFolder: async (path) => {
      steps.push(`${path.slice(root.length) || path} ${filesIn(root).filter((name) => name === NAME).length}`)
    },
  })
  await put(contents, Buffer.from('x'))
  t.same(
    steps.map((step) => step.split(' ')[1]),
    ['0', '0', '0', '0', '1'],
    'new directories first, each in the one that holds it',
  )
  t.equal(steps.at(-1), '/007/out/20261122 1')
  steps.length = 0
  await put(contents, Buffer.from('x'), [NAME.replace('-0', '-1')])
  t.same(steps, ['/007/out/20261122 1'], 'afterwards one directory')
})

t.test('files: an existing name stays unchanged', async (t) => {
  const root = join(folder(t), 'content')
  const { contents } = store(root)
  await put(contents, Buffer.from('first'))
  t.match(await put(contents, Buffer.from('second')), { ok: false, kind: 'away' })
  t.equal(String(await read(contents)), 'first')
  t.same(filesIn(root), [NAME])
})

t.test('files: a write that cannot begin on disk ends in the caller', async (t) => {
  const root = join(folder(t), 'content')
  const { contents } = store(root)
  await put(contents, Buffer.from('x'))
  writeFileSync(join(root, 'tmp'), 'in the place of the folder')
  let isEnded = false
  const source = async function* () {
    try {
      for (;;) yield randomBytes(FRAME_BYTES)
    } finally {
      isEnded = true
    }
  }
  const failed = await contents.put({ names: ['007/x'], mailKey, kind: 'files', source: source(), bytesMax: MB })
  t.match(failed, { ok: false, kind: 'away', reason: /ENOTDIR/ })
  t.ok(isEnded)
})

t.test('folder-sync: callers during a sync share the next one; a failed sync fails its own callers', async (t) => {
  const calls: (() => void)[] = []
  const sync = makeFolderSync(() => new Promise((resolve) => calls.push(resolve)))
  const first = sync('a')
  const others = [sync('a'), sync('a'), sync('a')]
  const elsewhere = sync('b')
  t.equal(calls.length, 2)
  calls[0]?.()
  calls[1]?.()
  await Promise.all([first, elsewhere])
  await until(() => calls.length === 3, 1000)
  calls[2]?.()
  await Promise.all(others)
  t.equal(calls.length, 3)
  let tries = 0
  const failing = makeFolderSync(async () => {
    tries += 1
    if (tries === 1) throw new Error('EIO')
  })
  const [broken, whole] = await Promise.allSettled([failing('a'), failing('a')])
  t.same([broken?.status, whole?.status], ['rejected', 'fulfilled'])
})

t.test('files: every byte of an object is looked at', async (t) => {
  const root = join(folder(t), 'content')
  const { contents, acts } = store(root)
  const bytes = randomBytes(2 * FRAME_BYTES)
  await put(contents, bytes)
  const path = join(root, NAME)
  const whole = readFileSync(path)
  for (let at = 0; at < whole.length; at += 4001) {
    const changed = Buffer.from(whole)
    changed[at] = (changed[at] ?? 0) ^ 4
    writeFileSync(path, changed)
    if ((await read(contents)) !== 'broken') t.fail(`byte ${at}`)
  }
  for (const length of [0, 10, 20, 5000, whole.length - 1, whole.length - 16 - FRAME_BYTES]) {
    writeFileSync(path, whole.subarray(0, length))
    if ((await read(contents)) !== 'broken') t.fail(`cut at ${length}`)
  }
  t.ok(acts.some(({ result }) => result === 'broken'))
})

t.test('files: a full disk fails one write and leaves nothing of it', { skip: SMALL_DISK_SKIP }, async (t) => {
  const disk = mountSmallDisk(4 * MB)
  t.teardown(disk.unmount)
  const root = join(disk.dir, 'content')
  const { contents } = store(root)
  const small = randomBytes(MB)
  t.same(await put(contents, small), { ok: true })
  const failed = await put(contents, randomBytes(6 * MB), ['007/out/20261122/bbbbbbbbbbbbbbbbbb-0.files'])
  t.match(failed, { ok: false, kind: 'full', reason: /ENOSPC/ })
  t.same(filesIn(root), [NAME], 'what was there is there, and what failed is not')
  const found = await read(contents)
  t.ok(Buffer.isBuffer(found) && found.equals(small))
  t.same(
    await put(contents, small, ['007/out/20261122/cccccccccccccccccc-0.files']),
    { ok: true },
    'and there is room again',
  )
})

t.test('files: a read-only disk refuses writes and removals, and is read', { skip: SMALL_DISK_SKIP }, async (t) => {
  const disk = mountSmallDisk(4 * MB)
  t.teardown(disk.unmount)
  const { contents, home } = store(join(disk.dir, 'content'))
  await put(contents, Buffer.from('kept'))
  disk.setReadOnly(true)
  t.match(await put(contents, Buffer.from('x'), ['007/out/20261122/d.files']), {
    ok: false,
    kind: 'away',
    reason: /EROFS/,
  })
  t.equal(await contents.remove([NAME]), false)
  t.equal(String(await read(contents)), 'kept')
  await t.rejects(home.removeDay('007/out/20261122'), /EROFS/)
  disk.setReadOnly(false)
  t.ok(await contents.remove([NAME]))
})

t.test('disk-room: open writes reserve what they will take; 10 % stay free', { skip: SMALL_DISK_SKIP }, async (t) => {
  const disk = mountSmallDisk(10 * MB)
  t.teardown(disk.unmount)
  const room = await watchDisk(disk.dir, quiet)
  t.teardown(() => room.stop())
  t.ok(room.hasRoom)
  const first = room.reserve(5 * MB)
  t.ok(first)
  t.equal(room.reserve(5 * MB), null, 'two of them would leave less than 10 %')
  const second = room.reserve(3 * MB)
  t.ok(second && room.hasRoom)
  const { contents } = store(join(disk.dir, 'content'), { room })
  t.match(await put(contents, randomBytes(2 * MB)), { ok: false, kind: 'full' })
  t.same(filesIn(disk.dir), [], 'it was not begun')
  writeFileSync(join(disk.dir, 'other'), randomBytes(9.5 * MB))
  await until(() => !room.hasRoom, 10_000)
  rmSync(join(disk.dir, 'other'))
  first?.(5 * MB)
  second?.(3 * MB)
  await until(() => room.hasRoom, 10_000)
  for (let write = 0; write < 50; write += 1) {
    const giveBack = room.reserve(5 * MB)
    t.ok(giveBack, 'small writes of which nobody said how small they are take what they took')
    giveBack?.(1_000)
  }
})

t.test('disk-room: on a large disk 10 GiB are enough', async (t) => {
  t.equal(keptFree(10 * MB), MB)
  t.equal(keptFree(100 * 1024 ** 4), 10 * 1024 ** 3)
})

t.test('files: unfinished writes of dead workers go, others stay', async (t) => {
  const root = join(folder(t), 'content')
  const { contents, home } = store(root)
  await put(contents, randomBytes(2 * FRAME_BYTES))
  for (const name of ['me-9', 'dead-1', 'dead-2']) linkSync(join(root, NAME), join(root, 'tmp', name))
  t.equal(await home.sweepUnfinished((worker) => worker === 'me'), 2)
  t.same(readdirSync(join(root, 'tmp')), ['me-9'])
})
