/**
 * fold - rows of reports added up: equal rows are one, and beyond a bound only their class is kept
 *
 * A row is a count and its names, `[count, name...]`, with empty names at the end left off. Rows have classes, and each
 * class has room for so many rows and bytes; a later row counts in the rest of its class, so that every sum stays
 * exact. Forged mail can therefore not displace the rows of mail that is aligned. Rows keep their order.
 *
 * Spec reports.rows
 */

import { REPORT_CLASS_BYTES_MAX, REPORT_CLASS_ROWS_MAX } from '../../../schemas/limits.ts'

export type FoldedRow = readonly [count: number, ...names: string[]]

/** How rows of one kind are classified. */
export interface RowKind {
  /** The class of a row. */
  readonly classOf: (names: readonly string[]) => string
  /** The names of the rest that a row counts in. */
  readonly restOf: (names: readonly string[]) => readonly string[]
}

export interface Fold {
  /** Adds a row. */
  add(count: number, names: readonly string[]): void
  /** All rows. */
  rows(): FoldedRow[]
}

interface Room {
  rows: number
  bytes: number
}

/** Makes a sum that begins with `before`. */
export function makeFold(kind: RowKind, before: readonly FoldedRow[] = []): Fold {
  const rows = new Map<string, number>()
  const rooms = new Map<string, Room>()
  const insert = (key: string, count: number, name: string): void => {
    const room = rooms.get(name) ?? { rows: 0, bytes: 0 }
    rooms.set(name, room)
    room.rows += 1
    room.bytes += Buffer.byteLength(key)
    rows.set(key, count)
  }
  for (const [count, ...names] of before) insert(JSON.stringify(names), count, kind.classOf(names))
  return {
    add(count, names) {
      const key = JSON.stringify(trimmed(names))
      const name = kind.classOf(names)
      const known = rows.get(key)
      if (known !== undefined) rows.set(key, known + count)
      else if (hasRoom(rooms.get(name), key)) insert(key, count, name)
      else {
        const rest = JSON.stringify(trimmed(kind.restOf(names)))
        rows.set(rest, (rows.get(rest) ?? 0) + count)
      }
    },
    rows: () => [...rows].map(([key, count]) => [count, ...(JSON.parse(key) as string[])]),
  }
}

function hasRoom(room: Room | undefined, key: string): boolean {
  if (room === undefined) return true
  return room.rows < REPORT_CLASS_ROWS_MAX && room.bytes + Buffer.byteLength(key) <= REPORT_CLASS_BYTES_MAX
}

function trimmed(names: readonly string[]): readonly string[] {
  const last = names.findLastIndex((name) => name !== '')
  return names.slice(0, last + 1)
}
