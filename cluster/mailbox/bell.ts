/**
 * bell - the notification to the owner of a shard that its mailbox has a new entry: shard and entry.
 *
 * Form: lines. `<shard>` alone states that something has come;
 * `<shard> <entry id> <the id before it> <parcel id> <worker>` names an entry of its mailbox. The content of the entry
 * was published right before, over its own channel (`parcel.ts`). The store writes bells (`mailbox-script.ts`) and
 * nothing depends on them. A malformed bell, or one for a missing parcel, only wakes the shard.
 */
import { sortableEntryId } from '../id.ts'
import type { Bell } from '../store.ts'
import { CALL_PARCELS_MAX, readParcelId } from './parcel.ts'

const SHARD = /^\d{1,5}$/
const ENTRY_ID = /^\d{1,15}-\d{1,19}$/

/** Bells and the parcels that they name, in the order of arrival. */
export class BellReader {
  private parcels = new Map<string, Buffer>()

  /** A parcel has arrived, which the next bell may name. */
  parcel(bytes: Buffer): void {
    const id = readParcelId(bytes)
    if (id === '') return
    // No call publishes more before its bell; parcels without bells must not accumulate.
    if (this.parcels.size >= CALL_PARCELS_MAX) this.parcels.clear()
    this.parcels.set(id, bytes)
  }

  /** The bells in a received message; malformed lines are skipped. */
  bells(text: string): Bell[] {
    const { parcels } = this
    if (parcels.size > 0) this.parcels = new Map()
    return text.split('\n').flatMap((line) => parseBell(line, parcels))
  }
}

function parseBell(line: string, parcels: ReadonlyMap<string, Buffer>): Bell | [] {
  const [shard = '', id = '', before = '', parcelId = '', replyTo = ''] = line.split(' ')
  if (!SHARD.test(shard)) return []
  const body = parcels.get(parcelId)
  if (body === undefined || !isNext(id, before)) return { shard: Number(shard), entry: null, before: '' }
  return { shard: Number(shard), entry: { id, parcelId, replyTo, body }, before }
}

function isNext(id: string, before: string): boolean {
  return ENTRY_ID.test(id) && ENTRY_ID.test(before) && sortableEntryId(id) > sortableEntryId(before)
}
