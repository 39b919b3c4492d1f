/** cold-mail - a tenant with delivered mail in many small segments, old enough to be sealed. */

import type { Test } from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { makeAccept } from '../../../src/actors/message/accept.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { itemPrefix, itemSuffix } from '../../../src/state/message/item.ts'
import { SEGMENT_BOUNDS } from '../../../src/state/segment.ts'
import type { ServerKey } from '../../../src/views/key.ts'
import { Cold } from './cold.ts'
import { deliverAll, mailTo, openWorld } from './erasure.ts'
import { acceptedIds, hmacOf, LIVE_KEY, makeItem, send, type Tenant } from './tenant.ts'
import type { World } from './turn.ts'

export const DAY_MS = 86_400_000
/** Segments of a few messages; the fourth and later ones have postings. */
const BOUNDS = { ...SEGMENT_BOUNDS, recipientsMax: 40, busyRecipients: 20, fullRecipients: 35, busyBuckets: 4 }
export const type = makeAccept(BOUNDS)
export const PEOPLE = Array.from({ length: 9 }, (_, n) => `person-${n}@example.net`)
export interface Setting {
  readonly world: World
  readonly tenant: Tenant
  readonly cold: Cold
  readonly ids: readonly string[]
}

/** A tenant with some hundred delivered messages, eight days later. */
export function makeSetting(t: Test, count = 150): Setting {
  const { world, tenant } = openWorld()
  const cold = new Cold(world)
  t.teardown(() => cold.close())
  const ids: string[] = []
  for (let n = 0; n < count; n += 1) {
    world.nowMs += 20_000
    const to = PEOPLE[n % PEOPLE.length] as string
    const tag = n % 10 === 0 ? `tag-${n % 30}` : null
    const item = {
      ...mailTo(to, ...(n % 17 === 0 ? ['copy@example.net'] : [])),
      subject: `Order ${n}`,
      tag,
      tagHash: tag === null ? null : hmacOf(tag).slice(0, 8),
      metadata: { n: String(n % 5) },
    }
    ids.push(...acceptedIds(send(world, tenant, { messages: [makeItem(item)] }, { type })))
    if (n % 25 === 24) deliverAll(world, makeDelivered(250, `250 2.0.0 ok ${n}`))
  }
  deliverAll(world, makeDelivered(250, '250 2.0.0 ok'))
  world.nowMs += 8 * DAY_MS
  return { world, tenant, cold, ids }
}

/** Leaves bodies in Redis: what the daily sweep orders of them is dropped. */
export function dropPacks(world: World): void {
  for (const [name, { item }] of world.items) if (item.startsWith('pack.')) world.items.delete(name)
}

export function ownerOf({ accountId, live }: Tenant): ServerKey {
  const { serverId, streamId } = live
  return { kind: 'server', accountId, serverId, mode: 'live', defaultStreamId: streamId, tokenId: 't', hash: LIVE_KEY }
}

export function itemOf(serverId: string, { id, segment }: { id: string; segment: string }): string {
  const of = { recipients: 1, hasAttachments: false, broadcastStreamId: null }
  return itemPrefix(serverId, segment, shortId(id)) + itemSuffix(0, of)
}

export function complain(world: World, { live }: Tenant, place: { id: string; segment: string }): string {
  const report = { kind: 'complaint', feedbackType: 'abuse' } as const
  return world.run(recordReport, { item: itemOf(live.serverId, place), hmac: hmacOf('person-5@example.net'), report })
}
