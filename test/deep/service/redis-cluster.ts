/**
 * redis-cluster - the whole service over a Redis Cluster of three primaries, one of which is unreachable for a while.
 */
import t from 'tap'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { startLoad } from '../../support/clients/ledger.ts'
import { startClusterFleet } from '../../support/service/cluster-fleet.ts'

const ACCOUNTS = 12

t.test(
  'redis-cluster: accepted over all primaries; with one killed the accounts of the others get no refusal',
  async (t) => {
    const fleet = await startClusterFleet({ accounts: ACCOUNTS, durability: 'fsync' })
    t.teardown(() => fleet.end())
    const { cluster, httpPort, keys } = fleet
    const primaries = await Promise.all(keys.map((_, shard) => cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)))
    t.equal(new Set(primaries).size, 3, 'accounts lie on all of them')
    const load = startLoad({ port: httpPort, token: keys, clients: 6, recipient: (n) => `p${n}@example.com` })
    await load.passes(200)
    const ledger = await load.end()
    t.same(
      ledger.refusals.map(({ body }) => body),
      [],
    )
    t.ok([...ledger.told.values()].every(({ size }) => size === 1))

    const killed = primaries[0]
    const others = keys.filter((_, shard) => primaries[shard] !== killed)
    await killed?.kill()
    const beside = startLoad({ port: httpPort, token: others, clients: 6, recipient: (n) => `q${n}@example.com` })
    await beside.passes(300)
    const after = await beside.end()
    t.same(
      after.refusals.map(({ status, body }) => `${status} ${body}`),
      [],
      'one primary away stops nobody else',
    )
    await killed?.start()
    await fleet.ready()
    const again = startLoad({ port: httpPort, token: keys, clients: 6, recipient: (n) => `r${n}@example.com` })
    await again.passes(100)
    t.ok([...(await again.end()).told.values()].every(({ size }) => size === 1))
  },
)
