/**
 * copy - a copy of an installation, taken while it runs: a directory that is a DATA_DIR, from which it starts
 *
 * The order of copying is: the files of large content; the store as it is at one moment (the copy point); the files
 * created in the meantime; secret, identity, first keys and certificate. A file is never changed, only created and
 * removed, so the files that the store names at the copy point are copied, except content of a message that came and
 * ended during the copy. Unnamed files are swept after a restore.
 *
 * Guarantees: the directory appears only as a whole, and is on disk when it does. Nothing of the installation is
 * changed.
 */
import { constants, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { copyFile, mkdir, open, readdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { copyStore } from '../../../cluster/embedded/rescue.ts'
import { CONF_KEY } from '../../../cluster/keyspace.ts'
import type { Config } from '../../process/config.ts'
import type { Nodes } from '../nodes.ts'
import { withStore } from '../with-store.ts'

/** Files beside the store and the content that belong to an installation. */
const BESIDE = /^(?:installation|(?:secret-key|cluster-secret)(?:\..*)?|first-run\.json(?:\..*)?|.*\.pem)$/
const CONTENT = 'content'
/** Unfinished objects, on which no answer depends yet. */
const UNFINISHED = 'tmp'
/** Files that are copied at once. */
const AT_ONCE = 8
const OWNER_ONLY = 0o700

/** A finished backup. */
export interface Backup {
  readonly directory: string
  /** By the store's clock, just before the copy point; everything answered with 200 before it is in the backup. */
  readonly at: string
  readonly installation: string
  readonly storeBytes: number
  readonly objects: number
  readonly objectBytes: number
  /** Sentences about parts of the installation that are not in the directory. */
  readonly elsewhere: readonly string[]
}

/** Makes a backup in `directory`, which must not be there. Throws Error, a sentence, when it cannot. */
export async function makeBackup(
  config: Config,
  directory: string,
  { content = true }: { content?: boolean } = {},
): Promise<Backup> {
  const target = resolve(directory)
  if (existsSync(target)) throw new Error(`${target} already exists: name a new directory`)
  const fresh = join(dirname(target), `.${basename(target)}.${process.pid}.new`)
  // Leftovers of a killed backup under this name are not part of this one.
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(fresh, { recursive: true, mode: OWNER_ONLY })
  try {
    const copyContent = (): Promise<Copied> =>
      content ? copyTree(join(config.dataDir, CONTENT), join(fresh, CONTENT)) : Promise.resolve(NOTHING)
    const before = await copyContent()
    const made = await withStore(config, (nodes) => makeCopy(nodes, fresh))
    const copied = plus(before, await copyContent())
    for (const name of readdirSync(config.dataDir).filter((one) => BESIDE.test(one)))
      await copyWhole(join(config.dataDir, name), join(fresh, name))
    await sync(fresh)
    renameSync(fresh, target)
    await sync(dirname(target))
    return { directory: target, ...made, ...copied, elsewhere: elsewhereOf(config, { content }) }
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    throw error
  }
}

/**
 * Copies the store into a folder. Throws Error if there are several Redis, because their copies would be of different
 * moments.
 */
export async function makeCopy(
  nodes: Nodes,
  fresh: string,
): Promise<Pick<Backup, 'at' | 'installation' | 'storeBytes'>> {
  const client = nodes.common()
  if (/^cluster_enabled:1/m.test(await client.info('cluster')))
    throw new Error('This command cannot copy a Redis Cluster: see docs/operate/backup.md')
  const [seconds = 0] = await client.time()
  const installation = (await client.hget(CONF_KEY, 'id')) ?? ''
  const spare = client.duplicate({ retryStrategy: () => null, lazyConnect: true })
  spare.on('error', () => undefined)
  try {
    await spare.connect()
    const storeBytes = await copyStore({ client, spare }, fresh)
    return { at: new Date(Number(seconds) * 1000).toISOString(), installation, storeBytes }
  } finally {
    spare.disconnect()
  }
}

type Copied = Pick<Backup, 'objects' | 'objectBytes'>
const NOTHING: Copied = { objects: 0, objectBytes: 0 }

function plus(one: Copied, other: Copied): Copied {
  return { objects: one.objects + other.objects, objectBytes: one.objectBytes + other.objectBytes }
}

/**
 * Copies the files of a folder that the other one does not have yet. Returns the copied amount. A missing folder, or
 * one removed in the meantime, counts as empty.
 */
async function copyTree(from: string, to: string): Promise<Copied> {
  const entries = await readdir(from, { withFileTypes: true }).catch(nothingThere)
  if (entries === undefined) return NOTHING
  await mkdir(to, { recursive: true, mode: OWNER_ONLY })
  let copied = NOTHING
  const files = entries.filter((entry) => entry.isFile() && !existsSync(join(to, entry.name)))
  const copyRest = async (): Promise<void> => {
    for (let next = files.pop(); next !== undefined; next = files.pop()) {
      const bytes = await copyWhole(join(from, next.name), join(to, next.name))
      if (bytes !== null) copied = plus(copied, { objects: 1, objectBytes: bytes })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, copyRest))
  for (const { name } of entries.filter((entry) => entry.isDirectory() && entry.name !== UNFINISHED))
    copied = plus(copied, await copyTree(join(from, name), join(to, name)))
  await sync(to)
  return copied
}

/** Copies a file to disk. Returns its bytes; null if it no longer exists. */
async function copyWhole(from: string, to: string): Promise<number | null> {
  const isThere = await copyFile(from, to, constants.COPYFILE_FICLONE).then(() => true, nothingThere)
  if (isThere === undefined) return null
  await sync(to)
  return statSync(to).size
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

function nothingThere(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Sentences about parts that the directory does not have. */
function elsewhereOf({ secretKey, contentStore }: Config, { content }: { content: boolean }): string[] {
  const bucket =
    contentStore?.kind === 's3' ? [contentStore.bucket, contentStore.prefix].filter(Boolean).join('/') : null
  return [
    ...(secretKey === null ? [] : ['SECRET_KEY is set in the environment: keep it with this backup, and not in it']),
    ...(bucket === null ? [] : [`Large content is in s3://${bucket}: copy the bucket now, after the store`]),
    ...(bucket === null && !content
      ? ['The files of large content are not included: copy content/ now, after the store']
      : []),
  ]
}
