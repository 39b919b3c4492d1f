/**
 * broadcast - processes that are killed while three broadcasts are released and one is cancelled: every recipient is in
 * the log once or counts as failed, the sums hold, and no bucket is left.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { freePort } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'
import { setScene } from '../support/service/crash-scene.ts'
import { type Host, startHost } from '../support/service/host.ts'

const KILLS = Number(process.env.KILLS ?? 4)
const RECIPIENTS = 400
const PAGE = 100

const { redis, settings, firstRun, end } = await setScene()
const operatorPort = await freePort()
const all = { ...settings, OPERATOR_PORT: String(operatorPort) }
const store = new Redis(redis.socketPath)
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  store.disconnect()
  await end()
})
const { token } = firstRun.testServer

/** What this file reads of answers. */
interface Said {
  readonly streamId: string
  readonly broadcastId: string
  readonly status: string
  readonly released: number
  readonly failed: number
  readonly completedAt: string | null
  readonly messages: readonly { readonly recipients: readonly { readonly recipient: string }[] }[]
  readonly next: string | null
}

/** A request that is made again until a process answers it. */
async function call(what: string, body?: object, of = { port: Number(settings.HTTP_PORT), token }) {
  const [method = 'GET', path = '/'] = what.split(' ')
  return until(async () => {
    const answer = await fetch(`http://127.0.0.1:${of.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${of.token}`, 'content-type': 'application/json', connection: 'close' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(() => null)
    return answer === null || answer.status === 503
      ? null
      : { status: answer.status, json: (await answer.json()) as Said }
  }, 60_000)
}

const people = (name: string) =>
  Array.from({ length: RECIPIENTS }, (_, n) => ({
    to: `delivered+${name}${n}@simulator.test`,
    substitutions: { n: String(n) },
  }))
const submit = (streamId: string, name: string) =>
  call('POST /v1/broadcasts', {
    streamId,
    from: 'news@simulator.test',
    subject: 'Hi {{n}}',
    text: 'Hello',
    messages: people(name),
  })

/** How often each recipient of a broadcast is in the log. */
async function loggedOf(broadcastId: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (let after: string | undefined; ; ) {
    const { json }: { json: Said } = await call('POST /v1/messages/search', {
      broadcastId,
      limit: PAGE,
      ...(after !== undefined && { after }),
    })
    for (const { recipients } of json.messages) {
      const recipient = recipients[0]?.recipient ?? ''
      counts.set(recipient, (counts.get(recipient) ?? 0) + 1)
    }
    if (json.next === null) return counts
    after = json.next
  }
}

t.test(`crash: ${KILLS} kills while broadcasts are released [broadcast.release] [broadcast.read]`, async (t) => {
  host = await startHost(all)
  const { streamId } = (await call('POST /v1/streams', { kind: 'broadcast', name: 'News' })).json
  const pace = { pacePerMinute: 6_000 }
  await call(`PATCH /v1/operator/streams/${streamId}`, pace, {
    port: operatorPort,
    token: firstRun.operatorToken as string,
  })
  const made = [await submit(streamId, 'a'), await submit(streamId, 'b'), await submit(streamId, 'c')]
  const ids: string[] = made.map(({ json }) => json.broadcastId)
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = (await call(`GET /v1/broadcasts/${ids[kill % 2]}`)).json.released
    await until(
      async () => ((await call(`GET /v1/broadcasts/${ids[kill % 2]}`)).json.released > before + 20 ? true : null),
      60_000,
    )
    if (kill === 1) await call(`POST /v1/broadcasts/${ids[2]}/cancel`)
    await host?.kill('SIGKILL')
    host = await startHost(all)
  }
  for (const [index, id] of ids.entries()) {
    const seen = await until(async () => {
      const { json } = await call(`GET /v1/broadcasts/${id}`)
      return json.completedAt === null ? null : json
    }, 120_000)
    t.equal(seen.status, index === 2 ? 'cancelled' : 'completed')
    t.equal(seen.released + seen.failed, RECIPIENTS)
    if (index < 2) t.equal(seen.released, RECIPIENTS)
    const logged = await loggedOf(id)
    t.equal(logged.size, seen.released, 'everybody who was released is in the log')
    t.same(
      [...logged].filter(([, times]) => times !== 1),
      [],
      'and nobody twice',
    )
  }
  t.same(
    (await store.keys('*:content:*')).filter((key) => /:r\d+$/.test(key)),
    [],
    'no bucket is left',
  )
  t.same(await store.keys('*:running:*'), [])
})
