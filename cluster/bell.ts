/**
 * bell - what is said to the owner of shards when something has come for them: which shard, and the entry itself.
 *
 * Form: one bell after the other. A line `<shard>` alone says that something has come; a line
 * `<shard> <entry id> <the id before it> <parcel id> <worker> <bytes>` is followed by so many bytes, which are the parcel.
 * The store writes bells (`mailbox-script.ts`) and nothing rests on them: of a bell that is none the shard is rung.
 */
import { sortableEntryId } from './id.ts'
import type { Bell } from './store.ts'

const LINE_END = 10
const SHARD = /^\d{1,5}$/
const ENTRY_ID = /^\d{1,15}-\d{1,19}$/

/** The bells in what was published; from one on whose end is not to be found, the rest is not. */
export function parseBells(bytes: Buffer): Bell[] {
  const bells: Bell[] = []
  let at = 0
  while (at < bytes.length) {
    const end = bytes.indexOf(LINE_END, at)
    if (end < 0) break
    const [shard = '', id = '', before = '', parcelId = '', replyTo = '', length = '0'] = bytes
      .toString('latin1', at, end)
      .split(' ')
    const size = Number(length)
    at = end + 1 + size
    if (!SHARD.test(shard) || !(size >= 0) || at > bytes.length) break
    const isWhole = size > 0 && isNext(id, before) && parcelId !== ''
    const entry = isWhole ? { id, parcelId, replyTo, body: bytes.subarray(end + 1, at) } : null
    bells.push(entry === null ? { shard: Number(shard), entry, before: '' } : { shard: Number(shard), entry, before })
  }
  return bells
}

function isNext(id: string, before: string): boolean {
  return ENTRY_ID.test(id) && ENTRY_ID.test(before) && sortableEntryId(id) > sortableEntryId(before)
}
