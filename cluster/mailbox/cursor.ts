/**
 * cursor - the position in a mailbox, `<entry id>` once all of an entry's commands are done, `<entry id>/<n>` once n
 * commands are.
 *
 * A malformed cursor is read as far as possible, so that no shard stops reading.
 */
import { entryIdAfter } from '../id.ts'

export interface Cursor {
  /** The entry that was read last; `0-0` for none. */
  readonly entryId: string
  /** The number of its finished commands if some are left; 0 means all are finished. */
  readonly done: number
}

/** Ids that every read of a stream takes. */
const FORM = /^(\d{1,15}-\d{1,19})(?![\d])(?:\/(\d{1,9})$)?/
const NO_ENTRY = '0-0'

/** The cursor in a text; '' and malformed text mean before the first entry. */
export function parseCursor(text: string): Cursor {
  const [, entryId = NO_ENTRY, done = '0'] = FORM.exec(text) ?? []
  return { entryId, done: Number(done) }
}

/** The cursor after the command at `place` (from 0) of an entry with `count` commands. */
export function cursorAfter(entryId: string, place: number, count: number): string {
  return place + 1 < count ? `${entryId}/${place + 1}` : entryId
}

/** The least entry id that is still needed with a cursor. */
export function firstKept(cursor: string): string {
  const { entryId, done } = parseCursor(cursor)
  return done > 0 ? entryId : entryIdAfter(entryId)
}
