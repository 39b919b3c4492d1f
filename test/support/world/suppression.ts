/** suppression - what a world holds of a tenant's suppression list. */

import { bucketOfHmac } from '../../../src/state/hash-fraction.ts'
import { firstPersonsKey, suppressedKey, suppressionsKey } from '../../../src/state/keys.ts'
import { unpackPerson } from '../../../src/state/person/person.ts'
import { parsePlace, type Suppression, unpackSuppression } from '../../../src/state/suppression.ts'
import { hmacOf, type Tenant } from './tenant.ts'
import type { World } from './turn.ts'

/** The entry of an address on the live server's default stream, null if there is none. */
export function entryOf(world: World, tenant: Tenant, address: string): Suppression | null {
  const hmac = hmacOf(address)
  const slice = (bucketOfHmac(hmac) >> 4).toString(16)
  const packed = world.hash(suppressedKey(world.shard, tenant.live.streamId, slice)).get(hmac)
  return packed === undefined ? null : unpackSuppression(packed)
}

/** Every place that was ever listed on the live server. */
export function listedPlaces(world: World, tenant: Tenant) {
  return world.stream(suppressionsKey(world.shard, tenant.live.serverId)).map(parsePlace)
}

/** The row of an address. */
export function personOf(world: World, tenant: Tenant, address: string) {
  const hmac = hmacOf(address)
  const packed = world.hash(firstPersonsKey(world.shard, tenant.accountId)).get(hmac)
  return packed === undefined ? null : unpackPerson(packed)
}
