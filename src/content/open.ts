/**
 * open - which home an installation's content has, and that this process has the same
 *
 * A home has an identity of its own (`.id` in it), which the installation stores. A process whose DATA_DIR or bucket
 * is not the one that the others share does not start. Copying a home copies its identity: content moves from files to
 * a bucket by copying it there and changing the setting.
 *
 * Key: `{cl}:conf`, field `content`: the home's identity; absent while all content lies in Redis
 * (`store/installation.ts`)
 */

import { randomUUID } from 'node:crypto'
import { type Config, FILES_IN_NO_REPLICA, isOwnStore } from '../process/config.ts'
import type { Log } from '../process/log.ts'
import { type ContentAct, type Contents, makeContents } from './contents.ts'
import { watchDisk } from './disk-space.ts'
import { contentFolder, makeFileHome } from './files.ts'
import { type StorageBackend, toStorageFailure } from './storage-backend.ts'

/** This process would use another content store than the installation; the start ends with this message. */
export class ContentMismatch extends Error {}

/** The identity of the home of large content, as stored by the installation. Both reject when the store is away. */
export interface HomeMark {
  /** Null if no home is stored. */
  read(): Promise<string | null>
  /** Stores `id` if no home is stored; returns the stored one. */
  claim(id: string): Promise<string | null>
}

export interface OpenContentsDeps {
  readonly config: Config
  readonly mark: HomeMark
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Names this process's worker, for its unfinished writes. */
  readonly worker: () => string
  readonly told: (act: ContentAct) => void
}

/** Opens the home of the settings and the installation; null if content is in Redis. Throws ContentMismatch. */
export async function openContents(deps: OpenContentsDeps): Promise<Contents | null> {
  const { config, mark, log, told } = deps
  const known = await mark.read()
  const home = await chooseHome(deps, known)
  if (home === null) return null
  await identify(home, mark, known).catch(async (error: unknown) => {
    await home.close()
    throw error
  })
  // Our own store writes to the same disk, and its watcher logs for both.
  const roomLog = config.redisUrls.length === 0 ? null : log
  const room = home.kind === 'file' ? await watchDisk(config.dataDir, roomLog) : null
  return makeContents({ home, room, told, warn: (facts, text) => log.warn(facts, text) })
}

async function chooseHome(deps: OpenContentsDeps, known: string | null): Promise<StorageBackend | null> {
  const { config, worker } = deps
  const { contentStore, dataDir, durability } = config
  const folder = contentFolder(dataDir)
  if (contentStore?.kind === 'redis') {
    if (known === null) return null
    throw new ContentMismatch(
      'CONTENT_STORE is redis, but this installation has content in files or a bucket: set that place until all its content has expired, then run HDEL {cl}:conf content',
    )
  }
  if (contentStore?.kind === 's3') {
    const { makeS3Home } = await import('./s3.ts')
    const { bucket, prefix } = contentStore
    return makeS3Home({ ...(config.s3 as NonNullable<Config['s3']>), bucket, prefix }, { folder, worker })
  }
  const files = makeFileHome(folder, { worker })
  if (contentStore?.kind === 'file' || isOwnStore(config)) {
    if (durability === 'replica') throw new ContentMismatch(FILES_IN_NO_REPLICA)
    return files
  }
  if (known === null) return null
  if ((await files.readId()) === known) return files
  throw new ContentMismatch(
    'The large content of this installation is in the DATA_DIR of other processes, or in a bucket. Set DATA_DIR to the shared directory, or CONTENT_STORE to the value of the other processes',
  )
}

/** Brings home and installation together: both new, or one adopts the other's, or both agree. */
async function identify(home: StorageBackend, mark: HomeMark, known: string | null): Promise<void> {
  const where = home.kind === 'file' ? 'DATA_DIR' : 'The bucket of CONTENT_STORE'
  const readId = (): Promise<string | null> =>
    home.readId().catch((error: unknown) => {
      throw new ContentMismatch(`${where} cannot be read: ${toStorageFailure(error).message}`)
    })
  let id = await readId()
  if (id === null && known !== null)
    throw new ContentMismatch(
      `${where} does not have this installation's content. Restore it. If it is lost, write ${known} into ${home.kind === 'file' ? 'content/.id' : '.id'} there; its attachments and large bodies are lost`,
    )
  if (id === null) {
    await home.writeId(randomUUID()).catch((error: unknown) => {
      throw new ContentMismatch(`${where} cannot be written to: ${toStorageFailure(error).message}`)
    })
    id = await readId()
  }
  const agreed = known ?? (await mark.claim(id as string))
  if (agreed !== id) throw new ContentMismatch(`${where} has the content of another installation`)
}
