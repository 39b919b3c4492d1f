/**
 * Scenario 38: a stop while a message is being sent. A transfer that the server has accepted is finished if the server
 * answers in time. The rest waits for the next start, without an event.
 */

import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const delivery = await startDelivery({}, { smtp: {} })
const { send, messageWhen, destination, service } = delivery
t.teardown(() => delivery.stop())

t.test('stop 38: a message past DATA ends, an earlier one returns without an event [delivery.returned]', async (t) => {
  const late = await destination('late.test', { dot: 'hang' })
  const early = await destination('early.test', { rcpt: 'hang', capabilities: [] })
  const ids = { late: await send(['ann@late.test']), early: await send(['ann@early.test']) }
  await until(() => late.sessions[0]?.messages.length === 1, 10_000)
  await until(() => early.sessions[0]?.commands.some((line) => line.startsWith('RCPT')), 10_000)
  const restarted = service.restart()
  await until(() => early.sessions[0]?.closed, 10_000)
  t.notOk(late.sessions[0]?.closed, 'the one is waited for')
  late.script({})
  early.script({})
  late.answer('250 2.0.0 at last')
  await restarted
  const done = await messageWhen(ids.late, ({ status }) => status === 'delivered')
  t.match(done.events, [{ event: 'delivered', details: { response: '250 2.0.0 at last' } }])
  t.equal(late.sessions.flatMap(({ messages }) => messages).length, 1, 'sent once')
  const other = await messageWhen(ids.early, ({ status }) => status === 'delivered')
  t.equal(other.events.length, 1, 'no word of the attempt that was cut')
  t.equal(other.recipients[0]?.attempts, 1)
})

t.test('stop: a transfer without an answer within eight seconds is cut and repeated after the start', async (t) => {
  const mx = await destination('never.test', { dot: 'hang' })
  const id = await send(['ann@never.test'])
  await until(() => mx.sessions[0]?.messages.length === 1, 10_000)
  const restarted = service.restart()
  mx.script({})
  await restarted
  const { events } = await messageWhen(id, ({ status }) => status === 'delivered')
  t.equal(events.length, 1)
  t.equal(mx.sessions.flatMap(({ messages }) => messages).length, 2, 'nobody knew what became of the first')
})
