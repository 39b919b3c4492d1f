/**
 * The process is ended with SIGKILL at each step of a turn, once; the next start must find a store that is whole, and
 * clients that tried on with their keys must find that each of their messages was sent once.
 */
import t from 'tap'
import { sendAll } from '../../support/clients/ledger.ts'
import { SETTLED, settle } from '../../support/clients/settle.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { CRASH_POINTS } from '../../support/store/crash-shard.ts'

const MESSAGES = 40

t.jobs = 1
const { redis, settings, firstRun, end } = await setScene()
const { testServer, account } = firstRun
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  await end()
})

let sentBefore = 0
for (const point of CRASH_POINTS) {
  const id = `crash.${point.replaceAll(/\W+/g, '-')}`
  t.test(`crash: killed when ${point}, nothing is lost, doubled or miscounted [${id}]`, async (t) => {
    const dying = await startHost(settings, { point, ready: point !== 'acquired' })
    host = dying
    const load = sendAll({
      port: Number(settings.HTTP_PORT),
      token: testServer.token,
      clients: 8,
      recipient: (n) => `person${n % 10}@example.com`,
      goOn: (sent) => sent < MESSAGES,
    })
    if (point === 'released') {
      await load
      await dying.kill('SIGTERM')
    } else await dying.exited
    host = await startHost(settings)
    const ledger = await load
    const { serverId } = testServer
    const found = await settle(redis.socketPath, { serverId, accountId: account.accountId, ledger })
    t.match(found, { ...SETTLED, told: MESSAGES })
    t.equal(found.logged, sentBefore + MESSAGES, 'every message is in the log once')
    t.equal(found.counted, found.logged, 'and was counted once')
    sentBefore = found.logged
    await host.kill('SIGTERM')
  })
}
