/** Two processes that deliver to one site have together no more connections than one alone would have. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { LIVE_DOMAIN, seedAccounts } from '../../../bench/contestants/seed.ts'
import type { ShardList } from '../../../schemas/operator/cluster.ts'
import { postEmail } from '../../support/clients/ledger.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { startMx } from '../../support/peers/mx.ts'
import { startZone } from '../../support/peers/zone.ts'
import { FLEET_SECRET, type Fleet, startFleet } from '../../support/service/fleet.ts'

const CONNECTIONS = 4
/** Rounds in which the server lets every connection wait at the dot. */
const ROUNDS = 5
/** One on each of the first shards. That one process owns all of these has a chance of one in thirty thousand. */
const ACCOUNTS = 16

t.test('two processes share a site’s connections [delivery.site.share]', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-share-'))
  const file = join(folder, 'sites.json')
  const limits = { connections: CONNECTIONS, connectionsStart: CONNECTIONS }
  writeFileSync(file, JSON.stringify({ 'mx.shared.test': limits }))
  const zone = await startZone()
  const mx = await startMx({ dot: 'hang' }, { host: '127.0.78.1', port: await freePort() })
  zone.set('shared.test', { type: 'MX', exchange: 'mx.shared.test', priority: 10 })
  zone.set('mx.shared.test', { type: 'A', address: '127.0.78.1' })
  const fleet = await startFleet(['all', 'actors'], {
    settings: {
      DNS_SERVERS: zone.server,
      DELIVERY_PORT: String(mx.port),
      PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
      SERVICE_DOMAIN: 'service.example',
      SITE_LIMITS: file,
      MX_PORT: '0',
    },
  })
  t.teardown(async () => {
    await fleet.end()
    await mx.close()
    await zone.close()
    rmSync(folder, { recursive: true })
  })
  const { socketPath } = fleet.redis
  const seeding = { socketPath, accounts: ACCOUNTS, mode: 'live', secretKey: FLEET_SECRET, over: ACCOUNTS } as const
  const tokens = await seedAccounts(seeding)
  await until(async () => (await ownersOf(fleet)).size === 2, 30_000)
  const body = { from: `you@${LIVE_DOMAIN}`, to: ['ann@shared.test'], subject: 'Hello', text: 'x' }
  const port = fleet.with('http')[0]?.httpPort ?? 0
  for (const token of tokens)
    for (let n = 0; n < 2 * CONNECTIONS * ROUNDS; n += 1)
      t.equal((await postEmail({ port, token }, body, null))?.status, 200)
  const asked = () => mx.sessions.reduce((sum, { messages }) => sum + messages.length, 0)
  for (let round = 0, answered = 0; round < ROUNDS; round += 1) {
    const isFull = () => mx.open.now >= CONNECTIONS && asked() - answered === mx.open.now
    await until(isFull, 20_000)
    answered = asked()
    mx.answer('250 2.0.0 ok')
  }
  t.equal(mx.open.most, CONNECTIONS)
})

/** Owners of the accounts' shards; none while one of them has no living owner. */
async function ownersOf({ vessels, firstRun }: Fleet): Promise<Set<string>> {
  const answer = await fetch(`http://127.0.0.1:${vessels[0]?.operatorPort}/v1/operator/shards`, {
    headers: { authorization: `Bearer ${firstRun.operatorToken}`, connection: 'close' },
  })
  if (answer.status !== 200) return new Set()
  const { shards, workers } = (await answer.json()) as ShardList
  const living = new Set(workers.filter((one) => one.isAlive && !one.isLeaving).map(({ worker }) => worker))
  const owners = shards.slice(0, ACCOUNTS).map(({ owner }) => owner ?? '')
  return owners.every((owner) => living.has(owner)) ? new Set(owners) : new Set()
}
