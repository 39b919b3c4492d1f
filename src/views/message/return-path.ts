/**
 * return-path - the recipient that a return path names: whether there is such a message, whose it is, and in which
 * state its sending domain is
 *
 * An id names only its shard, so the message is searched on the servers of the shard: those of the accounts that have
 * the domain of the return path, or all of them if the return path is the service's own.
 *
 * Keys: `accounts`, `names:<account>`, `servers:<account>`, `segments:<server>`, `log:<server>:<segment>`,
 * `domain:<id>`
 *
 * Spec bounce.recipient
 */

import type { FactOf, ValueOf } from '../../../cluster/behaviour.ts'
import { msOf, shardOf, shortId } from '../../../cluster/id.ts'
import type { TokenRecipient } from '../../mail/return-path.ts'
import { computeMonth, monthStartMs } from '../../state/calendar.ts'
import { type DomainState, domainRef } from '../../state/domain.ts'
import { segmentsKey } from '../../state/keys.ts'
import { itemPrefix, itemSuffix } from '../../state/message/item.ts'
import { parseLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'
import { readPersons } from '../person.ts'
import { type DomainServer, readShardServers } from '../shard-servers.ts'

/** Segments of one month: more than a server can fill. */
const SEGMENTS_MAX = 10_000

/** A recipient of a message, found. */
export interface FoundRecipient {
  readonly shard: number
  readonly accountId: string
  /** Name of its item. */
  readonly item: string
  /** The address, or the pseudonym of an erased one; '' if it was removed. */
  readonly address: string
  /** The sending domain's state; null if the return path is the service's own. */
  readonly domain: DomainState | null
}

/**
 * Finds a recipient. In: `domain`, the sending domain of the return path, null for the service's own. Out: null if
 * there is no such recipient.
 */
export async function findRecipient(
  read: Reader,
  { messageId, recipient }: TokenRecipient,
  domain: string | null,
): Promise<FoundRecipient | null | 'unavailable'> {
  const shard = shardOf(messageId)
  if (shard === null) return null
  const servers = await readShardServers(read, shard, domain)
  const segments = servers === null ? null : await readSegments(read, shard, { servers, messageId })
  if (servers === null || segments === null) return 'unavailable'
  const places = servers.flatMap((server, index) => {
    const segment = segments[index]
    return segment === undefined ? [] : [{ server, segment }]
  })
  const logs = await read(
    shard,
    places.map(({ server, segment }): FactOf<'range'> => {
      return new MessageRows(shard, { serverId: server.serverId, segment }).entryFact(messageId)
    }),
  )
  if (logs === null) return 'unavailable'
  const at = logs.findIndex((value) => value.length > 0)
  const place = places[at]
  const logged = logs[at]?.[0]
  const entry = place === undefined || logged === undefined ? null : parseLogEntry(logged)
  const number = entry?.recipients[recipient]
  if (place === undefined || entry === null || number === undefined) return null
  const of = { recipients: entry.recipients.length, hasAttachments: false, broadcastStreamId: null }
  const item = itemPrefix(place.server.serverId, place.segment, shortId(messageId)) + itemSuffix(recipient, of)
  return readRest(read, { shard, server: place.server, item, number })
}

/** For each server the segment in which the message would be; undefined if there is none. */
async function readSegments(
  read: Reader,
  shard: number,
  { servers, messageId }: { servers: readonly DomainServer[]; messageId: string },
): Promise<readonly (string | undefined)[] | null> {
  const max = msOf(messageId)
  // Test servers, whose segments are days, send nothing.
  const min = monthStartMs(computeMonth(max))
  const seen = await read(
    shard,
    servers.map(({ serverId }): FactOf<'sorted'> => {
      return { read: 'sorted', key: segmentsKey(shard, serverId), min, max, count: SEGMENTS_MAX }
    }),
  )
  return seen?.map(lastOf) ?? null
}

function lastOf(value: ValueOf<FactOf<'sorted'>>): string | undefined {
  return value.at(-1)?.[0]
}

async function readRest(
  read: Reader,
  of: { shard: number; server: DomainServer; item: string; number: number },
): Promise<FoundRecipient | 'unavailable'> {
  const { shard, server, item, number } = of
  const { accountId, domainId } = server
  const [persons, states] = await Promise.all([
    readPersons(read, { shard, accountId, numbers: [number] }),
    read(shard, domainId === null ? [] : [entityFact(shard, domainRef(domainId))]),
  ])
  if (persons === null || states === null) return 'unavailable'
  return { shard, accountId, item, address: persons[0] ?? '', domain: parseState<DomainState>(states[0]) }
}
