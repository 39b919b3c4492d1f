/**
 * listed - the content that all messages of a broadcast share, read once for many messages
 *
 * Guarantees: the cache is bounded, and read again after a minute, so that erased content is not sent for longer.
 *
 * Keys: `content:<contentId>:head`, `content:<contentId>:body`
 *
 * Spec broadcast.release
 */

import { type ListedTexts, readListedTexts } from '../mail/compose/listed.ts'
import { HEAD_PART, type OwnContent } from '../state/broadcast/content.ts'
import { contentKey } from '../state/keys.ts'
import { attachmentPart, BODY_PART } from '../state/message/content-part.ts'
import { type Head, unpackHead } from '../state/message/head.ts'
import { type Body, type ContentStore, readPart } from './content.ts'

/** Broadcasts that are kept, each with at most 10 MB, and how long. */
const KEPT_MAX = 8
const KEPT_MS = 60_000

/** The content that all messages of a broadcast share. */
export interface ListedContent {
  readonly head: Head
  readonly texts: ListedTexts
  /** Bytes of the attachments, in a copy for the caller; null and undefined as for `read`. */
  readonly files: () => Promise<readonly Buffer[] | null | undefined>
}

/** Reads the content shared by broadcasts' messages. */
export interface ListedContents {
  /** Null once it is gone; undefined when the store did not answer. */
  read(shard: number, contentId: string): Promise<ListedContent | null | undefined>
}

/** Makes the reader of a process. Takes a monotonic clock, ms. */
export function makeListedContents(redis: ContentStore, nowMs: () => number): ListedContents {
  const kept = new Map<
    string,
    { readonly readAtMs: number; readonly content: Promise<ListedContent | null | undefined> }
  >()
  return {
    read(shard, contentId) {
      const known = kept.get(contentId)
      if (known !== undefined && nowMs() - known.readAtMs < KEPT_MS) return known.content
      kept.delete(contentId)
      if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value as string)
      const content = readShared(redis, { shard, contentId })
      kept.set(contentId, { readAtMs: nowMs(), content })
      return content.then((found) => {
        // A store that did not answer may do so now.
        if (found === undefined && kept.get(contentId)?.content === content) kept.delete(contentId)
        return found
      })
    },
  }
}

/** The broadcast content that a released message's part refers to; null if the part is a separate body. */
export function parseListed(parsed: unknown): OwnContent | null {
  if (!Array.isArray(parsed)) return null
  const [contentId, substitutions] = parsed as [string, OwnContent['substitutions']]
  return { contentId, substitutions }
}

async function readShared(
  redis: ContentStore,
  place: { readonly shard: number; readonly contentId: string },
): Promise<ListedContent | null | undefined> {
  const { shard, contentId } = place
  const [heads, bytes] = await Promise.all([
    redis.readContent(shard, [contentKey(shard, contentId, HEAD_PART, 0)]),
    readPart(redis, { ...place, part: BODY_PART, test: false }),
  ])
  if (heads === null || bytes === undefined) return undefined
  const [head] = heads
  if (head == null || bytes === null) return null
  const shared = unpackHead(head.toString(), 0)
  let kept: Promise<readonly Buffer[] | null | undefined> | null = null
  return {
    head: shared,
    texts: readListedTexts(JSON.parse(bytes.toString()) as Body, shared.ownsList !== true),
    async files() {
      kept ??= readFiles(redis, place, shared.attachments.length)
      const files = await kept
      // A store that did not answer may do so now.
      if (files === undefined) kept = null
      // The composer transfers its bytes to a thread.
      return files?.map((file) => Buffer.from(file)) ?? files
    },
  }
}

async function readFiles(
  redis: ContentStore,
  place: { readonly shard: number; readonly contentId: string },
  count: number,
): Promise<readonly Buffer[] | null | undefined> {
  const files: Buffer[] = []
  for (let index = 0; index < count; index += 1) {
    const bytes = await readPart(redis, { ...place, part: attachmentPart(index), test: false })
    if (bytes === null || bytes === undefined) return bytes
    files.push(bytes)
  }
  return files
}
