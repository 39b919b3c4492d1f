/**
 * outgoing - the content of a message that goes out, small content in Redis, large content in the content store
 *
 * If a message has more than 64 KB, its attachments are one object, in their order, or in their place the message as
 * received whole. A body that is large itself is another object. Both are durable before the command that names them
 * is handed over, under names that follow from its id; the commit checks nothing, because no sweep touches an object
 * before its day, and the command is dead long before.
 *
 * Guarantees: content written for a message that is not accepted is removed if that is known, and otherwise expires
 * with its day.
 *
 * Spec retention.content, retention.attachments
 */

import { damagedValue } from '../../cluster/sum.ts'
import type { Contents } from '../content/contents.ts'
import { BrokenObject } from '../content/framing.ts'
import { openJoined } from '../content/joined.ts'
import { makeMailKey } from '../content/mail-key.ts'
import { fillListed, UNFILLED_LINK } from '../mail/compose/listed.ts'
import { monotonicMs } from '../process/fence.ts'
import type { OwnContent } from '../state/broadcast/content.ts'
import { attachmentPart, BODY_PART, RAW_PART } from '../state/message/content-part.ts'
import type { Head, HeadAttachment, StoredContent } from '../state/message/head.ts'
import { packName } from '../state/message/packed.ts'
import { type OutgoingPart, outgoingName } from '../state/object-name.ts'
import { openMailKey, type SealingRing } from '../state/ring/sealing.ts'
import { type Body, type ContentStore, makeContentStore, type PackedPart, readPart, unpackPart } from './content.ts'
import { type ListedContents, makeListedContents, parseListed } from './listed.ts'
import type { Nodes } from './nodes.ts'

/** Total size of a message from which on content goes to the content store. */
export const STORED_BYTES_MIN = 64 * 1024
/** A body of up to this much (packed) stays where small bodies are. */
const BODY_BYTES_MIN = 16 * 1024

/** Where the content of messages is stored. */
export interface OutgoingStore {
  readonly redis: ContentStore
  /** Null if all content is in Redis. */
  readonly contents: Contents | null
  /** Seals the keys of mails. */
  readonly ring: SealingRing
  /** The shared content of messages of broadcasts. */
  readonly listed: ListedContents
}

/** Opens it. Takes the rest of where content may be. */
export function openOutgoing(
  nodes: Nodes,
  { contents, ring }: Pick<OutgoingStore, 'contents' | 'ring'>,
): OutgoingStore {
  const redis = makeContentStore(nodes)
  return { redis, contents, ring, listed: makeListedContents(redis, monotonicMs) }
}

/** A message's content, divided. */
export interface DividedContent {
  /** Parts for Redis, or within the commit. */
  readonly parts: readonly PackedPart[]
  /** Parts for the content store, or null. */
  readonly objects: OutgoingObjects | null
}

export interface OutgoingObjects {
  readonly stored: StoredContent
  readonly key: Buffer
  /** The packed body; null: it is among the parts. */
  readonly body: readonly Uint8Array[] | null
  /** The attachments, or null. */
  readonly files: readonly Uint8Array[] | null
}

/** Divides a message's content by its destination. Takes its packed parts and the bytes of its attachments in order. */
export function divideContent(
  { contents, ring }: Pick<OutgoingStore, 'contents' | 'ring'>,
  { parts, attachments }: { readonly parts: readonly PackedPart[]; readonly attachments: readonly Uint8Array[] },
): DividedContent {
  let bytes = 0
  for (const { chunks } of parts) bytes += bytesOf(chunks)
  if (contents === null || bytes <= STORED_BYTES_MIN) return { parts, objects: null }
  const body = parts.find(({ part }) => part === BODY_PART)
  const isBodyLarge = body !== undefined && bytesOf(body.chunks) > BODY_BYTES_MIN
  const files = attachments.length > 0
  const { key, sealed } = makeMailKey(ring)
  return {
    parts: body === undefined || isBodyLarge ? [] : [body],
    objects: {
      stored: { key: sealed, body: isBodyLarge, files },
      key,
      body: isBodyLarge ? body.chunks : null,
      files: files ? attachments : null,
    },
  }
}

interface MessagePlace {
  readonly shard: number
  readonly contentId: string
  readonly test: boolean
}

/** Names of a message's objects. */
export function objectNames(place: MessagePlace, { body, files }: StoredContent): string[] {
  const names: string[] = []
  if (body) names.push(nameOf(place, 'body'))
  if (files) names.push(nameOf(place, 'files'))
  return names
}

/** Writes a message's objects; false if the store did not take all. */
export async function writeObjects(
  contents: Contents,
  place: MessagePlace,
  objects: OutgoingObjects,
): Promise<boolean> {
  const put = async (part: OutgoingPart, pieces: readonly Uint8Array[] | null): Promise<boolean> => {
    if (pieces === null) return true
    const order = { names: [nameOf(place, part)], mailKey: objects.key, kind: part, source: pieces }
    return (await contents.put({ ...order, bytesMax: bytesOf(pieces) })).ok
  }
  const written = await Promise.all([put('body', objects.body), put('files', objects.files)])
  return written.every(Boolean)
}

/** Reads a message's body back: null once it is gone; undefined when the store did not answer. */
export async function readBody(
  store: OutgoingStore,
  place: MessagePlace & { readonly stored: StoredContent | null },
): Promise<Body | null | undefined> {
  const bytes = await readBodyBytes(store, place)
  if (bytes === null || bytes === undefined) return bytes
  const parsed: unknown = JSON.parse(bytes.toString())
  const listed = parseListed(parsed)
  if (listed === null) return parsed as Body
  const shared = await store.listed.read(place.shard, listed.contentId)
  return shared ? fillListed(shared.texts, listed.substitutions, UNFILLED_LINK) : shared
}

/**
 * Reads the individual content of a broadcast's message: null if it has expired; undefined if the store did not answer.
 */
export async function readOwn(
  store: OutgoingStore,
  place: MessagePlace & { readonly stored: StoredContent | null },
): Promise<OwnContent | null | undefined> {
  const bytes = await readBodyBytes(store, place)
  return bytes === null || bytes === undefined ? bytes : parseListed(JSON.parse(bytes.toString()))
}

async function readBodyBytes(
  store: OutgoingStore,
  place: MessagePlace & { readonly stored: StoredContent | null },
): Promise<Buffer | null | undefined> {
  if (place.stored?.packed !== undefined) return readPacked(store, place.shard, place.stored)
  if (place.stored?.body !== true) return readPart(store.redis, { ...place, part: BODY_PART })
  const packed = await readObject(store, { ...place, stored: place.stored }, 'body')
  return packed === null || packed === undefined ? packed : unpackPart([packed])
}

/** Reads a body out of its pack, as `readObject` does. */
async function readPacked(
  { contents, ring }: OutgoingStore,
  shard: number,
  { key, packed }: StoredContent,
): Promise<Buffer | null | undefined> {
  const mailKey = openMailKey(ring, key)
  if (mailKey === null || packed === undefined) return null
  if (contents === null) return undefined
  const sealed = await contents.readSealed(packName(shard, packed.object), packed)
  if (typeof sealed === 'string') return sealed === 'away' ? undefined : null
  return unpackPart([await openJoined(sealed, { mailKey, kind: 'body' }).catch(asDamaged)])
}

function asDamaged(error: unknown): never {
  throw error instanceof BrokenObject ? damagedValue('content') : error
}

/** Reads all attachments back, in their order: null once they are gone; undefined when the store did not answer. */
export async function readAttachments(
  store: OutgoingStore,
  place: MessagePlace & { readonly stored: StoredContent | null; readonly attachments: readonly HeadAttachment[] },
): Promise<readonly Buffer[] | null | undefined> {
  const { attachments, stored } = place
  if (stored?.files === true) {
    const files = await readObject(store, { ...place, stored }, 'files')
    return files === null || files === undefined ? files : cut(files, attachments)
  }
  const read: Buffer[] = []
  for (const index of attachments.keys()) {
    const bytes = await readPart(store.redis, { ...place, part: attachmentPart(index) })
    if (bytes === null || bytes === undefined) return bytes
    read.push(bytes)
  }
  return read
}

/** Reads the attachments of a message, or those that its broadcast shares; as `readAttachments`. */
export async function readFiles(
  store: OutgoingStore,
  { head, ...place }: MessagePlace & { readonly head: Head },
): Promise<readonly Buffer[] | null | undefined> {
  const { broadcast, stored, attachments } = head
  if (broadcast === null) return readAttachments(store, { ...place, stored, attachments })
  const shared = await store.listed.read(place.shard, broadcast.contentId)
  return shared ? shared.files() : shared
}

/** Reads a message that came whole: null once it is gone; undefined when the store did not answer. */
export function readRaw(
  store: OutgoingStore,
  place: MessagePlace & { readonly stored: StoredContent | null },
): Promise<Buffer | null | undefined> {
  const { stored } = place
  return stored?.files === true
    ? readObject(store, { ...place, stored }, 'files')
    : readPart(store.redis, { ...place, part: RAW_PART })
}

/**
 * Null if the object is gone, or its mail's key cannot be opened.
 * Throws DamagedValue if its bytes were changed.
 */
async function readObject(
  { contents, ring }: OutgoingStore,
  place: MessagePlace & { readonly stored: StoredContent },
  part: OutgoingPart,
): Promise<Buffer | null | undefined> {
  const mailKey = openMailKey(ring, place.stored.key)
  if (mailKey === null) return null
  if (contents === null) return undefined
  const found = await contents.read({ name: nameOf(place, part), mailKey, kind: part })
  if (typeof found !== 'string') return found
  if (found === 'broken') throw damagedValue('content')
  return found === 'away' ? undefined : null
}

/** The attachments, each in a separate buffer, because they are transferred to a mail thread. */
function cut(files: Buffer, attachments: readonly HeadAttachment[]): Buffer[] | null {
  let at = 0
  const read = attachments.map(({ size }) => {
    const bytes = files.subarray(at, at + size)
    at += size
    return attachments.length === 1 ? bytes : Buffer.from(bytes)
  })
  return at === files.length ? read : null
}

function nameOf({ shard, contentId, test }: MessagePlace, part: OutgoingPart): string {
  return outgoingName(shard, { contentId, part, test })
}

function bytesOf(pieces: readonly Uint8Array[]): number {
  let bytes = 0
  for (const { length } of pieces) bytes += length
  return bytes
}
