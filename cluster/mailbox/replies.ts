/**
 * replies - the results of the commands of parcels, in the store and as published.
 *
 * The commands of a parcel are done in their order. The part done by one commit is one field of `replies`,
 * `<parcel>/<place of the first>`: how many, a space, their results as a JSON list. Published, it is a line with the
 * field, a space and the list. A reader begins at place 0 and continues where a field ends.
 */
import type { Op } from '../behaviour.ts'
import { msOfCmdId } from '../cmd-id.ts'
import { repliesKey } from '../keyspace.ts'
import type { AskResult, Origin } from '../work.ts'

const SLICE_MS = 2_000
const REPLY_LIFE_MS = 120_000

/** Results of the commands of a parcel from a place on. */
export interface Results {
  readonly parcelId: string
  readonly from: number
  readonly results: readonly AskResult[]
}

/** The slice of `replies` that holds those of a parcel. */
export function sliceOf(parcelId: string): number {
  return Math.floor(msOfCmdId(parcelId) / SLICE_MS)
}

/** The results in a published line; null if it is malformed. */
export function parseTold(line: string): Results | null {
  const [slash, space] = [line.indexOf('/'), line.indexOf(' ')]
  const results = slash < 0 || space < slash ? null : parseList(line.slice(space + 1))
  const from = Number(line.slice(slash + 1, space))
  return results === null || !(from >= 0) ? null : { parcelId: line.slice(0, slash), from, results }
}

/** The results that the fields of a parcel hold, from place 0 up to the first field that cannot be read. */
export function parseResults(values: readonly string[]): readonly AskResult[] {
  const results: AskResult[] = []
  for (const value of values) {
    const space = value.indexOf(' ')
    const list = parseList(value.slice(space + 1))
    // The following results would go to the wrong commands.
    if (list === null || list.length !== Number(value.slice(0, space))) break
    results.push(...list)
  }
  return results
}

function parseList(json: string): readonly AskResult[] | null {
  try {
    const list: unknown = JSON.parse(json)
    return Array.isArray(list) ? list : null
  } catch {
    return null
  }
}

/** The results of one commit. */
export class ParcelReplies {
  /** Replies that the commit publishes (`Commit.told`), by worker, one line for each parcel. */
  readonly told = new Map<string, string>()
  private readonly open = new Map<Origin, { from: number; results: AskResult[] }>()

  /** The next command of a parcel is done. */
  add(origin: Origin, place: number, result: AskResult): void {
    const mine = this.open.get(origin)
    if (mine === undefined) this.open.set(origin, { from: place, results: [result] })
    else mine.results.push(result)
  }

  /** Replies that the commit writes, and that `told` publishes from then on. */
  close(shard: number, nowMs: number): Op[] {
    const keys = new Map<string, string[]>()
    for (const [{ parcelId, replyTo }, { from, results }] of this.open) {
      const [field, list] = [`${parcelId}/${from}`, JSON.stringify(results)]
      const key = repliesKey(shard, sliceOf(parcelId))
      const args = keys.get(key)
      if (args === undefined) keys.set(key, [field, `${results.length} ${list}`])
      else args.push(field, `${results.length} ${list}`)
      const before = this.told.get(replyTo)
      this.told.set(replyTo, before === undefined ? `${field} ${list}` : `${before}\n${field} ${list}`)
    }
    const expiry = [String(nowMs + REPLY_LIFE_MS)]
    return [...keys].flatMap(([key, args]): Op[] => [
      { key, write: 'HSET', args },
      { key, write: 'PEXPIREAT', args: expiry },
    ])
  }
}
