/** Searches that match nothing, as many as a client can ask: other clients are served, and their account is limited. */
import t from 'tap'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'

const BATCHES = 10
const CLIENTS = 40
const ATTACK_MS = 3_000

const service = await startAttacked(t)
const { token } = service.firstRun.testServer
const messages = Array.from({ length: 100 }, () => ({
  from: 'you@simulator.test',
  to: ['delivered@simulator.test'],
  subject: 'Hello',
  text: 'x',
  metadata: { order: '1' },
}))
for (let n = 0; n < BATCHES; n += 1) await service.call('POST /v1/email/batch', { token, body: { messages } })
const search = async (): Promise<number> => {
  const body = { metadata: { order: '2' } }
  return (await service.call('POST /v1/messages/search', { token, body })).status
}
await search()

t.test('searches: an account that only searches is refused after a while, and holds up no other client', async (t) => {
  const seen: number[] = []
  const harm = await service.during(async () => {
    const endMs = performance.now() + ATTACK_MS
    const client = async () => {
      while (performance.now() < endMs) seen.push(await search())
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
  })
  t.same(new Set(seen), new Set([200, 429]))
  isHarmless(t, harm)
})
