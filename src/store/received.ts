/**
 * received - the content of a received mail in the content store: the raw mail, and its parsed form
 *
 * Both are objects under the mail's own key, which is sealed in its head row. The result is JSON, deflated.
 *
 * Spec inbound.read, inbound.raw, retention.inbound
 */

import { promisify } from 'node:util'
import { deflateSync, inflate } from 'node:zlib'
import type { Contents } from '../content/contents.ts'
import type { ParsedContent } from '../mail/mime/received-mail.ts'
import type { ContentHead } from '../state/received/content-head.ts'
import { receivedObjectName } from '../state/received/object.ts'
import { openMailKey, type SealingRing } from '../state/ring/sealing.ts'

const inflated = promisify(inflate)

/** Maximum size of a mail's result as JSON: 3 MiB of text and HTML escaped, headers, addresses and attachments. */
const PARSED_BYTES_MAX = 64 * 1024 * 1024

/** Where the content of received mail is stored. */
export interface ReceivedStore {
  /** Null: this installation has no content store, and receives no mail. */
  readonly contents: Contents | null
  /** Opens the keys of mails. */
  readonly ring: SealingRing
}

/** Whose mail it is, and its head row. */
export interface ReceivedContentPlace {
  readonly shard: number
  readonly serverId: string
  readonly head: Pick<ContentHead, 'objectId' | 'parsedId' | 'key'>
}

/**
 * Opens the raw mail or `length` bytes of it. Returns `damaged` if the object is missing or was changed; `away` if the
 * store does not answer.
 */
export async function openRaw(
  { contents, ring }: ReceivedStore,
  { shard, serverId, head }: ReceivedContentPlace,
  span: { readonly from: number; readonly length: number | null } = { from: 0, length: null },
): Promise<{ readonly size: number; readonly pieces: AsyncIterable<Buffer> } | 'damaged' | 'away'> {
  const mailKey = openMailKey(ring, head.key)
  if (mailKey === null) return 'damaged'
  if (contents === null) return 'away'
  const name = receivedObjectName(shard, serverId, head.objectId)
  const found = await contents.get({ name, mailKey, kind: 'mail', span })
  if (found.kind === 'there') return found
  return found.kind === 'away' ? 'away' : 'damaged'
}

/**
 * Reads the parsed form of a mail; null if the mail is not parsed; undefined if the store did not answer;
 * `damaged` if the object is missing or is not what was written.
 */
export async function readParsed(
  { contents, ring }: ReceivedStore,
  { shard, serverId, head }: ReceivedContentPlace,
): Promise<ParsedContent | 'damaged' | null | undefined> {
  if (head.parsedId === null) return null
  const mailKey = openMailKey(ring, head.key)
  if (mailKey === null) return 'damaged'
  if (contents === null) return undefined
  const name = receivedObjectName(shard, serverId, head.parsedId)
  const found = await contents.read({ name, mailKey, kind: 'parsed' })
  if (typeof found === 'string') return found === 'away' ? undefined : 'damaged'
  return JSON.parse((await inflated(found, { maxOutputLength: PARSED_BYTES_MAX })).toString()) as ParsedContent
}

/** Packs the result of parsing a mail. It takes its time, which is a thread's. */
export function packParsed(parsed: ParsedContent): Uint8Array {
  return deflateSync(JSON.stringify(parsed))
}

/** Writes the result of `packParsed` under a new id; false if the store did not accept it. */
export async function writeParsed(
  { contents, ring }: ReceivedStore,
  { shard, serverId, key, parsedId }: { shard: number; serverId: string; key: string; parsedId: string },
  packed: Uint8Array,
): Promise<boolean> {
  const mailKey = openMailKey(ring, key)
  if (mailKey === null || contents === null) return false
  const name = receivedObjectName(shard, serverId, parsedId)
  return (await contents.put({ names: [name], mailKey, kind: 'parsed', source: [packed], bytesMax: packed.length })).ok
}
