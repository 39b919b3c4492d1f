/**
 * restore-data-dir - writes the files of a data directory other than its store again, into one that was deleted
 * while the store ran
 *
 * The store itself is rewritten from memory (cluster/embedded/rescue.ts). Keys of the first start and large content in
 * files are lost, because only those files had them. Existing files are kept.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { createFile } from '../process/whole-file.ts'
import { keepInstallation } from './installation.ts'
import { keepSecret } from './secret.ts'

/** Known data of a running installation; null if it has none, or it is stored elsewhere. */
export interface Remembered {
  id: string | null
  secret: string | null
}

/**
 * Writes the files, so that the directory is the installation's again. Takes the store, which knows the identity of
 * the folder of large content, also of one made since the last look.
 */
export async function restoreFiles(dataDir: string, known: Remembered, client: Redis): Promise<void> {
  const { secret } = known
  const [inStore = null, contentId = null] = await client.hmget(CONF_KEY, 'id', 'content')
  const id = known.id ?? inStore
  if (id !== null) keepInstallation(dataDir, id)
  if (secret !== null) keepSecret(dataDir, secret)
  if (contentId === null) return
  const folder = join(dataDir, 'content')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  createFile(join(folder, '.id'), `${contentId}\n`)
}
