/**
 * content - whether the content store takes content, gives it back as it was, and has room
 *
 * An object is written, read and removed, as a message's would be.
 *
 * Spec operator.health
 */

import { randomBytes } from 'node:crypto'
import type { Finding } from '../../schemas/operator/health.ts'
import type { Contents } from '../content/contents.ts'
import { keptFree, readDisk } from '../content/disk-space.ts'
import { receivedName } from '../state/object-name.ts'
import { failed, warning, well } from './finding.ts'

const GIB = 1024 ** 3
const PROBE_BYTES = 100_000
/** The warning starts at twice the free space below which new mail is refused. */
const SOON_FULL = 2

/** Checks the content store. `contents` is null if all content is in Redis. Leaves no lasting change. */
export async function examineContent(contents: Contents | null, dataDir: string): Promise<Finding> {
  if (contents === null)
    return well(
      'content',
      'Large content is in Redis: messages with attachments use its memory until they reach a final state',
    )
  const isFile = contents.kind === 'file'
  const disk = isFile ? await readDisk(dataDir) : null
  const free = disk === null ? '' : `, ${(disk.free / GIB).toFixed(1)} GiB are free`
  const more = 'Free space on that disk, or stop the service and move DATA_DIR to a larger one'
  if (disk !== null && disk.free < keptFree(disk.bytes))
    return failed('content', `The disk of the content store is nearly full: new mail is refused${free}`, more)
  const wrong = await probe(contents)
  if (wrong !== null)
    return failed(
      'content',
      `The content store does not work: ${wrong}`,
      isFile
        ? `Let the service's user write to ${dataDir}/content, and check the disk`
        : 'Check S3_ENDPOINT, the bucket, the key and its permissions: PUT, GET, DELETE and list',
    )
  const where = isFile ? 'files' : 's3'
  const [first] = contents.damaged
  if (first !== undefined)
    return failed(
      'content',
      `${contents.damaged.size} objects in ${where} were damaged when they were read since the start, among them ${first}`,
      'Check the disk, and restore these objects from a backup: messages with them answer 503 content_damaged',
    )
  if (disk !== null && disk.free < SOON_FULL * keptFree(disk.bytes))
    return warning('content', `Large content is in ${where}${free}: soon new mail is refused`, more)
  return well('content', `Large content is in ${where}${free}`)
}

/**
 * The failed step; null if all steps work. A probe that is left behind is deleted by the sweep of objects that no row
 * names.
 */
async function probe(contents: Contents): Promise<string | null> {
  const bytes = randomBytes(PROBE_BYTES)
  const mailKey = randomBytes(32)
  const id = `probe-${randomBytes(8).toString('hex')}`
  const name = receivedName(0, { id, receivedAtMs: Date.now() })
  const order = { names: [name], mailKey, kind: 'mail', source: [bytes], bytesMax: bytes.length } as const
  const kept = await contents.put(order)
  if (!kept.ok) return kept.reason
  const read = await contents.read({ name, mailKey, kind: 'mail' })
  const isRemoved = await contents.remove([name])
  if (typeof read === 'string' || !read.equals(bytes)) return 'what was written is not read back'
  return isRemoved ? null : 'what was written cannot be removed'
}
