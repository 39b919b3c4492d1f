/**
 * files - the content store as local files
 *
 * `<DATA_DIR>/content/<name>`, readable by the service's user alone. An object of one frame is written under its first
 * name once it is complete; a larger one under `content/tmp` while it is received. It is linked to its names and
 * synced together with their directories before `write` resolves.
 *
 * Guarantees: an object whose `write` has resolved is complete and survives a power cut; until then no row has its
 * name. A crash leaves a file under `tmp`, or an object that no row names: both are swept.
 */

import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { makeFolderSync } from './folder-sync.ts'
import { FRAME_BYTES, SEALED_FRAME_BYTES, sealedSize } from './frame.ts'
import { type Front, type SealedSpan, type StorageBackend, toStorageFailure } from './storage-backend.ts'
import { bothEnd, ignoreAbsent, makeUnfinishedFiles, type NewFile, writeWhole } from './unfinished.ts'

const FOLDER_OWNER_ONLY = 0o700
const OWNER_ONLY = 0o600
const ID_FILE = '.id'
const UNFINISHED_FOLDER = 'tmp'
const DAY = /^\d{8}$/
/** One frame, because the bytes read are kept in memory until the reader takes them. */
const READ_BYTES = SEALED_FRAME_BYTES
/** One frame: most mail and nearly every result of parsing. A temporary name would be wasted work for it. */
const SMALL_BYTES_MAX = sealedSize(FRAME_BYTES)
/** Maximum number of directories known to exist: those of every shard for some days. */
const FOLDERS_MAX = 4096
/** Removals of a day that are under way together. */
const REMOVALS = 16

export interface FileHomeOptions {
  /** Names this process's worker, for its unfinished files. */
  readonly worker: () => string
  /** Replaces our own sync of directories, so that tests can check the calls. */
  readonly syncFolder?: (folder: string) => Promise<void>
}

/** The home in a folder, which may not exist yet. */
export function makeFileHome(root: string, { worker, syncFolder }: FileHomeOptions): StorageBackend {
  const unfinished = makeUnfinishedFiles(join(root, UNFINISHED_FOLDER), worker)
  const sync = makeFolderSync(syncFolder)
  const folders = makeFolders(root, sync)
  const pathOf = (name: string): string => join(root, name)
  return orFailure({
    kind: 'file',
    async readId() {
      return (await readFile(join(root, ID_FILE), 'utf8').catch(ignoreAbsent))?.trim() ?? null
    },
    async writeId(id) {
      await folders.make(root)
      const fresh = join(root, `${ID_FILE}.${randomBytes(6).toString('hex')}`)
      const file = await open(fresh, 'wx', OWNER_ONLY)
      try {
        await file.writeFile(`${id}\n`)
        await file.sync()
      } finally {
        await file.close()
      }
      await link(fresh, join(root, ID_FILE)).catch(ignorePresent)
      await unlink(fresh)
      await sync(root)
    },
    async write(names, sealed) {
      const paths = names.map(pathOf)
      const named: string[] = []
      const name = async (path: string): Promise<void> => {
        for (const one of paths.slice(named.length)) {
          await folders.linkInto(path, one)
          named.push(one)
        }
        const others = named.includes(path) ? [] : [unfinished.remove(path)]
        await Promise.all([...others, ...Array.from(new Set(named.map(dirname)), sync)])
      }
      const small = await gatherSmall(sealed)
      const written =
        small.rest === null
          ? writeSmall(small.bytes, { open: () => folders.openNew(paths[0] ?? ''), named, name })
          : unfinished.publish(small.rest, name).finally(small.end)
      await written.catch(async (error: unknown) => {
        for (const one of named) await unlink(one).catch(() => undefined)
        throw error
      })
    },
    front: (name, bytes) => readFront(pathOf(name), bytes),
    read: (name, span) => readFrom(pathOf(name), span),
    async remove(names) {
      for (const name of names) await unlink(pathOf(name)).catch(ignoreAbsent)
    },
    async days(prefix) {
      const names = await readdir(pathOf(prefix)).catch(ignoreAbsent)
      return (names ?? []).filter((name) => DAY.test(name)).sort()
    },
    async *list(prefix) {
      for (const leaf of (await readdir(pathOf(prefix)).catch(ignoreAbsent)) ?? []) {
        const found = await stat(join(pathOf(prefix), leaf)).catch(ignoreAbsent)
        if (found !== undefined) yield { name: `${prefix}/${leaf}`, writtenAtMs: found.mtimeMs }
      }
    },
    removeDay: (prefix) => folders.remove(pathOf(prefix)),
    sweepUnfinished: (isLiving) => unfinished.sweep(isLiving),
    close: async () => undefined,
  })
}

/** An object after the first frame: either small and complete, or larger. */
type Gathered =
  | { readonly bytes: Buffer; readonly rest: null }
  | {
      readonly rest: AsyncIterable<Buffer>
      /** Ends its source. Leaving the rest unread does not end it. */
      readonly end: () => Promise<void>
    }

/** Reads ahead: either the whole object if it is small, or its beginning followed by the rest. */
async function gatherSmall(sealed: AsyncIterable<Buffer>): Promise<Gathered> {
  const source = sealed[Symbol.asyncIterator]()
  const pieces: Buffer[] = []
  let length = 0
  while (length <= SMALL_BYTES_MAX) {
    const { done, value } = await source.next()
    if (done === true) return { bytes: Buffer.concat(pieces), rest: null }
    pieces.push(value)
    length += value.length
  }
  return {
    rest: (async function* () {
      yield* pieces
      yield* { [Symbol.asyncIterator]: () => source }
    })(),
    async end() {
      await source.return?.()
    },
  }
}

/** Writes a small object under its first name, and gives it the others while its bytes go to the disk. */
async function writeSmall(
  bytes: Buffer,
  { open, named, name }: { open: () => Promise<NewFile>; named: string[]; name: (path: string) => Promise<void> },
): Promise<void> {
  const { path, file } = await open()
  named.push(path)
  try {
    await writeWhole(file, bytes)
    await bothEnd(file.datasync(), name(path))
  } finally {
    await file.close()
  }
}

/** The same home, whose errors are all HomeFailures. */
function orFailure(home: StorageBackend): StorageBackend {
  const guard =
    <Args extends unknown[], Out>(call: (...args: Args) => Promise<Out>) =>
    (...args: Args): Promise<Out> =>
      call(...args).catch((error: unknown) => {
        throw toStorageFailure(error)
      })
  return {
    kind: home.kind,
    readId: guard(home.readId),
    writeId: guard(home.writeId),
    write: guard(home.write),
    front: guard(home.front),
    read: (name, span) => failing(home.read(name, span)),
    remove: guard(home.remove),
    days: guard(home.days),
    list: (prefix) => failing(home.list(prefix)),
    removeDay: guard(home.removeDay),
    sweepUnfinished: guard(home.sweepUnfinished),
    close: home.close,
  }
}

async function readFront(path: string, bytes: number): Promise<Front | null> {
  const file = await open(path, 'r').catch(ignoreAbsent)
  if (file === undefined) return null
  try {
    const { size } = await file.stat()
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, 0)
    return { size, bytes: buffer.subarray(0, bytesRead) }
  } finally {
    await file.close()
  }
}

async function* readFrom(path: string, { from, length }: SealedSpan): AsyncGenerator<Buffer> {
  const file = await open(path, 'r')
  try {
    const end = from + length
    for (let at = from; at < end; ) {
      const wanted = Math.min(READ_BYTES, end - at)
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}

async function* failing<Value>(values: AsyncIterable<Value>): AsyncGenerator<Value> {
  try {
    yield* values
  } catch (error) {
    throw toStorageFailure(error)
  }
}

/** Directories, made when they are needed, each on the disk in the one that holds it. */
function makeFolders(root: string, sync: (folder: string) => Promise<void>) {
  const made = new Set<string>()
  const make = async (folder: string): Promise<void> => {
    if (made.has(folder)) return
    await mkdir(folder, { recursive: true, mode: FOLDER_OWNER_ONLY })
    // From the outside in, because a name is worthless in a directory that may be lost. Others may have made them and
    // not synced.
    const steps = relative(root, folder).split(sep).filter(Boolean)
    for (let depth = 0; depth <= steps.length; depth += 1) await sync(dirname(join(root, ...steps.slice(0, depth))))
    if (made.size >= FOLDERS_MAX) made.clear()
    made.add(folder)
  }
  return {
    make,
    /** Makes a file under its name. A directory that a sweep has removed in the meantime is created again. */
    async openNew(path: string): Promise<NewFile> {
      await make(dirname(path))
      const openOnce = () => open(path, 'wx', OWNER_ONLY)
      const file = await openOnce().catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
        made.delete(dirname(path))
        await make(dirname(path))
        return openOnce()
      })
      return { path, file }
    },
    /** Gives a file a further name. A directory that a sweep has removed in the meantime is created again. */
    async linkInto(path: string, name: string): Promise<void> {
      await make(dirname(name))
      await link(path, name).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
        made.delete(dirname(name))
        await make(dirname(name))
        await link(path, name)
      })
    },
    async remove(folder: string): Promise<number> {
      const leaves = (await readdir(folder).catch(ignoreAbsent)) ?? []
      for (let from = 0; from < leaves.length; from += REMOVALS)
        await Promise.all(
          leaves.slice(from, from + REMOVALS).map((leaf) => unlink(join(folder, leaf)).catch(ignoreAbsent)),
        )
      made.delete(folder)
      await rmdir(folder).catch(ignoreAbsent)
      return leaves.length
    },
  }
}

/** An existing name was created by another process that starts at the same time. */
function ignorePresent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

/** The folder of the files under a data directory, including those on their way to a bucket. */
export function contentFolder(dataDir: string): string {
  return join(dataDir, 'content')
}
