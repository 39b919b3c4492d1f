/**
 * webhook-filter - killed at each step of a turn while webhooks filter by tag and by metadata: each has the events of
 * its own messages, and of no others.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sendAll } from '../../support/clients/ledger.ts'
import { until } from '../../support/machine/until.ts'
import { type Received, startReceiver } from '../../support/peers/receiver.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { callAt } from '../../support/service/service.ts'

const POINTS = ['decided', 'committed, reply lost', 'claim committed', 'outcome not committed'] as const
const MESSAGES = 24
const WAIT_MS = 90_000
/** Of a message to the simulator: one is deferred before it is delivered, and one bounces. */
const OUTCOMES = ['ok', 'deferred', 'hardbounce']

t.test('webhook: killed at any step, a filter has its own events and no others [webhook.filter]', async (t) => {
  const receiver = await startReceiver()
  if (receiver === null) return t.comment('openssl is not installed: skipped')
  const more = { PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }
  const scene = await startScene(more)
  const ca = join(scene.settings.DATA_DIR as string, 'ca')
  writeFileSync(ca, receiver.ca)
  await scene.host.kill('SIGTERM')
  const settings: Readonly<Record<string, string>> = { ...scene.settings, NODE_EXTRA_CA_CERTS: ca }
  let host: Host = await startHost(settings)
  t.teardown(async () => {
    await host.kill('SIGKILL')
    await receiver.close()
    await scene.end()
  })
  const port = Number(settings.HTTP_PORT)
  const { token } = scene.firstRun.testServer
  const filters = {
    tag: { tag: 'a' },
    metadata: { metadata: { kind: 'x' } },
    both: { tag: 'a', metadata: { kind: 'x' } },
  }
  for (const [name, filter] of Object.entries(filters)) {
    const body = { url: `${receiver.url}/${name}`, events: ['delivered', 'bounced'], ...filter }
    const { status } = await callAt(`http://127.0.0.1:${port}`, 'POST /v1/webhooks', { token, body })
    t.equal(status, 201)
  }
  const tagOf = (n: number) => (n % 2 === 0 ? 'a' : 'b')
  const kindOf = (n: number) => (n % 4 < 2 ? 'x' : 'y')
  const isFor = {
    tag: (n: number) => tagOf(n) === 'a',
    metadata: (n: number) => kindOf(n) === 'x',
    both: (n: number) => tagOf(n) === 'a' && kindOf(n) === 'x',
  }
  for (const point of POINTS) {
    await host.kill('SIGTERM')
    receiver.received.length = 0
    const dying = await startHost(settings, { point })
    host = dying
    const load = sendAll({
      port,
      token,
      clients: 4,
      recipient: (n) => `${OUTCOMES[n % OUTCOMES.length]}+${POINTS.indexOf(point)}x${n}@simulator.test`,
      fields: (n) => ({ tag: tagOf(n), metadata: { kind: kindOf(n) } }),
      keyOf: (n) => `${point} ${n}`,
      goOn: (sent) => sent < MESSAGES,
    })
    await dying.exited
    host = await startHost(settings)
    const { told } = await load
    for (const [name, isOwn] of Object.entries(isFor)) {
      const own = [...told].filter(([key]) => isOwn(Number(key.split(' ').at(-1)))).flatMap(([, ids]) => [...ids])
      const posts = () => receiver.received.filter(({ path }) => path === `/${name}`)
      await until(() => idsOf(posts()).length >= own.length, WAIT_MS)
      t.same(idsOf(posts()), own.sort(), `${point}: ${name}`)
      const events = new Set(posts().map(({ json }) => json.id))
      t.equal(events.size, own.length, `${point}: ${name}: an event that is posted again keeps its id`)
    }
  }
})

/** Ids of the messages of posts, each once. */
function idsOf(posts: readonly Received[]): string[] {
  return [...new Set(posts.map(({ json }) => json.messageId as string))].sort()
}
