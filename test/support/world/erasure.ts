/** erasure - orders to erase in a `World`, and what has come of them. */

import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { type EraseBody, erase } from '../../../src/actors/erasure/erase.ts'
import type { ErasureState, ErasureWalk } from '../../../src/state/erasure.ts'
import { headKey, logKey, segmentsKey, statusKey } from '../../../src/state/keys.ts'
import { type Head, isErasedHead, unpackHead } from '../../../src/state/message/head.ts'
import { logEntryOf } from '../../../src/state/message/log-entry.ts'
import { type RecipientState, statusField, unpackStatus } from '../../../src/state/message/status.ts'
import { ACCOUNT_KEY, hmacOf, type Tenant } from './tenant.ts'
import type { World } from './turn.ts'

export const PSEUDONYM = 'erased-abcdefghijkl'

export function makeErase({ accountId }: Tenant, address: string, changes: Partial<EraseBody> = {}): EraseBody {
  const domain = address.slice(address.indexOf('@') + 1)
  return {
    accountId,
    keyHash: ACCOUNT_KEY,
    hmac: hmacOf(address),
    pseudonym: PSEUDONYM,
    domain,
    mailbox: null,
    ...changes,
  }
}

/** Orders an erasure; throws with the code where it is refused. Out: its id. */
export function order(world: World, tenant: Tenant, address: string, changes: Partial<EraseBody> = {}): string {
  const reply = world.run(erase, makeErase(tenant, address, changes))
  if (reply.kind !== 'erasure') throw new Error(`Erasure was refused: ${reply.code}`)
  return reply.erasure.erasureId
}

/** Orders one, and carries it out as far as timers do. Out: what it has become. */
export function eraseNow(
  world: World,
  tenant: Tenant,
  address: string,
  changes: Partial<EraseBody> = {},
): ErasureState {
  const erasureId = order(world, tenant, address, changes)
  world.fireTimers()
  return stateOf(world, erasureId)
}

export function stateOf(world: World, erasureId: string): ErasureState {
  return world.states.get(`erasure:${erasureId}`) as ErasureState
}

export function walkOf(world: World, erasureId: string): ErasureWalk | null {
  return (world.counters.get(`erasure:${erasureId}`) ?? null) as ErasureWalk | null
}

/** A message of a server as it is stored. */
export interface StoredMessage {
  readonly head: Head | null
  readonly isErased: boolean
  readonly recipients: readonly RecipientState[]
}

export function messageOf(world: World, serverId: string, messageId: string): StoredMessage {
  const segments = [...world.sorted(segmentsKey(world.shard, serverId))]
  const segment = segments.filter(([, ms]) => ms <= msOf(messageId)).at(-1)?.[0] ?? ''
  const logged = world.stream(logKey(world.shard, serverId, segment)).find(({ id }) => id === entryIdOf(messageId))
  const entry = logged === undefined ? null : logEntryOf(logged)
  const short = shortId(messageId)
  const packed = world.hash(headKey(world.shard, serverId, segment)).get(short)
  const head = packed === undefined ? null : unpackHead(packed, entry?.recipients.length ?? 0)
  const rows = world.hash(statusKey(world.shard, serverId, segment))
  const recipients = (entry?.recipients ?? []).map((_, n) =>
    unpackStatus(rows.get(statusField(short, n)) ?? null, msOf(messageId)),
  )
  return { head, isErased: head !== null && isErasedHead(head), recipients }
}

/** Every text that the world holds: names of keys, fields, values, entries, states. */
export function textsOf(world: World): string {
  const parts: string[] = []
  for (const [key, value] of world.keys) {
    parts.push(key)
    if (value.type === 'hash') for (const [field, text] of value.fields) parts.push(field, String(text))
    else
      parts.push(
        JSON.stringify(value, (_, one) =>
          one instanceof Map ? [...one] : one instanceof Uint8Array ? Buffer.from(one).toString('latin1') : one,
        ),
      )
  }
  parts.push(JSON.stringify([...world.states]), JSON.stringify([...world.counters]))
  return parts.join('\n').toLowerCase()
}
