/** threaded-client - against a real DNS server: the same answers as in this thread, and one answer whatever ends */

import t from 'tap'
import { openClient } from '../../src/dns/client.ts'
import { makeClientThread } from '../../src/dns/threaded-client.ts'
import { until } from '../support/machine/until.ts'
import { startZone } from '../support/peers/zone.ts'

const ENDED = { status: 'failure', code: 'ECANCELLED' }
const zone = await startZone()
t.teardown(() => zone.close())

t.test('threaded-client: answers as a client in this thread does', async (t) => {
  const thread = makeClientThread({ servers: [zone.server] })
  const near = openClient({ servers: [zone.server] })
  t.teardown(async () => {
    near.close()
    await thread.close()
  })
  zone.set('a.test', { type: 'A', address: '192.0.2.1' }, { type: 'MX', exchange: 'mx.a.test', priority: 10 })
  zone.set('a+b.test', { type: 'TXT', data: ['v=spf1 ', 'ü'] })
  zone.set('huge.test', { type: 'TXT', data: Array<string>(8000).fill('x') })
  zone.fail('broken.test', 'servfail')
  const far = thread.open()
  const cases = [
    ['A', 'a.test'],
    ['MX', 'a.test'],
    ['TXT', 'a.test'],
    ['TXT', 'a+b.test'],
    ['TXT', 'huge.test'],
    ['A', 'broken.test'],
    ['A', 'nobody.test'],
    ['A', `${'x'.repeat(64)}.test`],
  ] as const
  const answers = await Promise.all(cases.map(([type, name]) => far.query(type, name)))
  for (const [at, [type, name]] of cases.entries()) t.same(answers[at], await near.query(type, name), `${type} ${name}`)
})

t.test('threaded-client: closing a client ends its own questions, closing the thread ends all', async (t) => {
  const thread = makeClientThread({ servers: [zone.server] })
  const [first, second] = [thread.open(), thread.open()]
  zone.fail('silent.test', 'timeout')
  zone.set('later.test', { type: 'A', address: '192.0.2.2' })
  const silent = first.query('A', 'silent.test')
  await until(() => zone.asked.includes('A silent.test'), 5000)
  const others = second.query('A', 'silent.test')
  first.close()
  t.same(await silent, ENDED)
  t.same(await first.query('A', 'later.test'), { status: 'ok', records: ['192.0.2.2'] }, 'it asks on')
  await thread.close()
  t.same(await others, ENDED)
  t.same(await second.query('A', 'later.test'), ENDED, 'no new thread after the end')
})

t.test('threaded-client: a thread that cannot start answers, and each question starts another', async (t) => {
  const thread = makeClientThread({ servers: ['no address'] })
  t.teardown(() => thread.close())
  const client = thread.open()
  t.same(await client.query('A', 'a.test'), ENDED)
  t.same(await client.query('A', 'a.test'), ENDED)
})

t.test('threaded-client: a thread that cannot even be made is an answer too', async (t) => {
  // As for a machine without room for another thread, `new Worker` throws.
  const servers = [(() => undefined) as unknown as string]
  const thread = makeClientThread({ servers })
  t.teardown(() => thread.close())
  t.same(await thread.open().query('A', 'a.test'), ENDED)
})
