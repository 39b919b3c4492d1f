/**
 * egress - the document of sources, pools and rules, the sources that rest, their counters, and the mail that the rules
 * see of a message
 *
 * Keys: `egress:conf`, `egress-rests`, `egress-sent:<window>`, `egress-day:<day>`
 *
 * Spec egress.document, egress.explain
 */

import type { Egress } from '../../../schemas/operator/egress.ts'
import {
  egressFact,
  placeField,
  placeOfField,
  type StoredEgress,
  unpackEgress,
  unpackRest,
} from '../../state/egress.ts'
import { EGRESS_SHARD, egressDayKey, egressRestsKey, egressSentKey } from '../../state/keys.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { entityFact, parseState } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'
import type { MessagePlace } from '../message/find-message.ts'
import { readPersons } from '../person.ts'
import { readMessageRows } from './message.ts'

/** A source at a site that rests. */
export interface SeenRest {
  readonly source: string
  readonly site: string
  readonly untilMs: number
  readonly why: string
}

/** The document and the rests; null if the store did not answer. */
export async function readEgress(
  read: Reader,
  nowMs: number,
): Promise<{ readonly stored: StoredEgress; readonly rests: readonly SeenRest[] } | null> {
  const facts = [egressFact(), { read: 'hash', key: egressRestsKey() }] as const
  const found = await read(EGRESS_SHARD, facts)
  if (found === null) return null
  const rests = [...found[1]].flatMap(([field, text]) => {
    const rest = unpackRest(text)
    return rest === null || rest.untilMs <= nowMs ? [] : [{ ...placeOfField(field), ...rest }]
  })
  return { stored: unpackEgress(found[0]), rests: rests.sort((a, b) => a.untilMs - b.untilMs) }
}

/** The document as it is read. */
export function formatEgress(
  { version, changedAtMs, document, passwords }: Omit<StoredEgress, 'passwords'> & { passwords: Iterable<string> },
  rests: readonly SeenRest[],
): Egress {
  return {
    version,
    changedAt: changedAtMs === null ? null : formatInstant(changedAtMs),
    ...document,
    passwords: [...passwords],
    resting: rests.map(({ source, site, untilMs, why }) => ({ source, site, why, until: formatInstant(untilMs) })),
  }
}

/** The mail of a recipient, as rules see it. */
export interface RuledMail {
  readonly accountId: string
  readonly serverId: string
  readonly streamId: string
  readonly streamKind: 'transactional' | 'broadcast'
  readonly domain: string
}

/** The mail of a recipient of a message. */
export async function readRuledMail(
  read: Reader,
  place: MessagePlace,
  { index, nowMs }: { readonly index: number; readonly nowMs: number },
): Promise<RuledMail | 'not_found' | 'unavailable'> {
  const { shard, serverId, accountId } = place
  const owner = await read(shard, [entityFact(shard, serverRef(serverId))])
  if (owner === null) return 'unavailable'
  const server = parseState<ServerState>(owner[0])
  if (server === null) return 'not_found'
  const stored = await readMessageRows(read, place, { ...server, nowMs })
  if (typeof stored === 'string') return stored
  const number = stored.entry.recipients[index]
  if (number === undefined) return 'not_found'
  const { streamId } = stored
  const stream = await read(shard, [entityFact(shard, streamRef(streamId))])
  const persons = await readPersons(read, { shard, accountId, numbers: [number] })
  if (stream === null || persons === null) return 'unavailable'
  const address = persons[0] ?? ''
  const isBroadcast = parseState<StreamState>(stream[0])?.kind === 'broadcast'
  return {
    accountId,
    serverId,
    streamId,
    streamKind: isBroadcast ? 'broadcast' : 'transactional',
    domain: address.slice(address.lastIndexOf('@') + 1).toLowerCase(),
  }
}

/** The counters of sources at sites. */
export interface EgressCounters {
  used(window: 'hour' | 'day', source: string, site: string): number
  attempts(result: 'delivered' | 'deferred' | 'bounced', source: string, site: string): number
}

/** Reads them for sources at a site, and at the relay; null if the store did not answer. */
export async function readEgressCounters(
  read: Reader,
  { sources, site, windows }: { sources: readonly string[]; site: string; windows: { hour: string; day: string } },
): Promise<EgressCounters | null> {
  const places = sources.flatMap((source) => [placeField(source, site), placeField(source, 'relay')])
  const results = places.flatMap((place) => RESULTS.map((result) => placeField(result, place)))
  const found = await read(EGRESS_SHARD, [
    { read: 'fields', key: egressSentKey(windows.hour), fields: places },
    { read: 'fields', key: egressSentKey(windows.day), fields: places },
    { read: 'fields', key: egressDayKey(windows.day), fields: results },
  ])
  if (found === null) return null
  const [hours, days, attempts] = found
  const of = (values: readonly (string | null)[], fields: readonly string[]) => (field: string) =>
    Number(values[fields.indexOf(field)] ?? 0)
  const used = { hour: of(hours, places), day: of(days, places) }
  const counted = of(attempts, results)
  return {
    used: (window, source, at) => used[window](placeField(source, at)),
    attempts: (result, source, at) => counted(placeField(result, placeField(source, at))),
  }
}

const RESULTS = ['delivered', 'deferred', 'bounced'] as const
