/** recipient - a search over all accounts in a store so slow that the time of a call is over before its first server */
import t from 'tap'
import { searchRecipient } from '../../../src/views/operator/recipient.ts'
import { acceptedIds, hmacOf, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const ADA = 'ada@example.net'

t.test('recipient: each call of a slow store is a step, and the last one ends [operator.recipients]', async (t) => {
  const world = new World(Date.UTC(2026, 10, 20))
  const tenant = makeTenant(world)
  const message = makeItem({ recipients: [makeRecipient(ADA)] })
  const sent = Array.from({ length: 3 }, () => acceptedIds(send(world, tenant, { messages: [message] }))[0])
  const { read } = readerOf(world)
  let nowMs = world.nowMs
  const deps = { read, nowMs: () => (nowMs += 3_000) }
  const found: string[] = []
  let after: string | null = null
  let calls = 0
  do {
    const page: Awaited<ReturnType<typeof searchRecipient>> = await searchRecipient(deps, {
      hmacOf: () => hmacOf(ADA),
      limit: 2,
      after,
    })
    if (page === null) throw new Error('The store did not answer')
    found.push(...page.messages.map(({ messageId }) => messageId))
    after = page.next
    calls += 1
  } while (after !== null && calls < 20)
  t.equal(after, null, 'it ends')
  t.same(found, sent.reverse())
})
