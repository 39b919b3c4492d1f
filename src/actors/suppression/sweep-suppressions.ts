/**
 * sweep-suppressions - removes the suppression lists of a removed server, in small steps.
 *
 * Its lists are removed last, because bounces may add to them while there is mail. Each removed entry is one list less
 * for its person, who can be removed once no list and no message names them.
 *
 * Spec server.remove, retention.person
 */

import type { Done, Entry, Fact, Facts, Need, Op } from '../../../cluster/behaviour.ts'
import { entryIdAfter, idOfEntry } from '../../../cluster/id.ts'
import { suppressionsKey } from '../../state/keys.ts'
import { countListOp, personFacts, personRowIn } from '../../state/person/person.ts'
import {
  parsePlace,
  type Suppression,
  type SuppressionPlace,
  suppressedFacts,
  suppressedKeyOf,
  suppressionIn,
} from '../../state/suppression.ts'

/** Entries of one step. */
export const STEP_SUPPRESSIONS = 100

/** Where the lists are. */
export interface ListsOf {
  readonly shard: number
  readonly accountId: string
  readonly serverId: string
}

/** The read of the server's oldest entries. */
export function listedFact({ shard, serverId }: Omit<ListsOf, 'accountId'>): Fact & { readonly read: 'range' } {
  return { read: 'range', key: suppressionsKey(shard, serverId), from: '-', to: '+', count: STEP_SUPPRESSIONS }
}

/** The writes of one step, or its reads; null if no entry is left. `listedFact` must have been fetched. */
export function sweepListed(facts: Facts, of: ListsOf): Required<Pick<Done<null>, 'ops'>> | Need | null {
  const entries = facts.range(listedFact(of))
  const last = entries.at(-1)
  if (last === undefined) return null
  const { shard, accountId, serverId } = of
  const listed = entries.map((entry) => ({ entry, place: parsePlace(entry) }))
  const reads = factsOf(
    listed.flatMap(({ place }) => (place === null ? [] : [place])),
    of,
  )
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const rows = new Map<string, string[]>()
  const fewer = new Map<string, { readonly number: number; readonly lists: number }>()
  for (const { entry, place } of listed) {
    const current = place === null ? null : findCurrent(facts, shard, { entry, place })
    if (place === null || current === null) continue
    const { hmac } = place
    const key = suppressedKeyOf(shard, place)
    rows.set(key, [...(rows.get(key) ?? []), hmac])
    // An entry from before an erasure does not count for the new person of the address.
    if (personRowIn(facts, { shard, accountId, hmac })?.number !== current.number) continue
    fewer.set(hmac, { number: current.number, lists: (fewer.get(hmac)?.lists ?? 0) + 1 })
  }
  const ops: Op[] = Array.from(rows, ([row, hmacs]) => ({ key: row, write: 'HDEL', args: hmacs }))
  for (const [hmac, { number, lists }] of fewer) {
    const counted = countListOp(facts, -lists, { shard, accountId, hmac, number })
    if (counted !== null) ops.push(counted)
  }
  ops.push({ key: suppressionsKey(shard, serverId), write: 'XTRIM', args: ['MINID', entryIdAfter(last.id)] })
  return { ops }
}

/** The reads of the rows and persons of some entries. */
function factsOf(places: readonly SuppressionPlace[], { shard, accountId }: ListsOf): Fact[] {
  const byStream = new Map<string, string[]>()
  for (const { streamId, hmac } of places) byStream.set(streamId, [...(byStream.get(streamId) ?? []), hmac])
  const persons = [...new Set(places.map(({ hmac }) => hmac))]
  return [
    ...[...byStream].flatMap(([streamId, hmacs]) => suppressedFacts(shard, streamId, new Set(hmacs))),
    ...personFacts({ shard, accountId }, persons),
  ]
}

/** The suppression of an entry; null if it was lifted since. */
function findCurrent(
  facts: Facts,
  shard: number,
  { entry, place }: { readonly entry: Entry; readonly place: SuppressionPlace },
): Suppression | null {
  const current = suppressionIn(facts, shard, place)
  return current?.suppressionId === idOfEntry(entry.id, shard) ? current : null
}
