/** mx-server - a session has its time, unless a mail is in hand. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { MxServer } from '../../src/reception/mx-server.ts'
import { openDialog } from '../support/peers/smtp-dialog.ts'

const MINUTE_MS = 60_000

t.test('mx-server: ten minutes without a mail, an hour in total, never in the middle of one [mx.idle]', async (t) => {
  const ids: string[] = []
  const server = new MxServer({
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    onConnect: ({ id }, done) => {
      ids.push(id)
      done()
    },
  })
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  t.teardown(() => server.close(() => undefined))
  const { port } = server.server.address() as AddressInfo
  const dialog = await openDialog(port)
  const [id = ''] = ids
  const after = (minutes: number) => server.endOver(performance.now() + minutes * MINUTE_MS)
  after(9.9)
  t.match(await dialog.say('NOOP'), /^250 /)
  server.mailBegins(id)
  after(70)
  t.match(await dialog.say('NOOP'), /^250 /, 'a mail is in hand')
  server.mailDone(id)
  after(9.9)
  t.match(await dialog.say('NOOP'), /^250 /)
  after(10)
  t.match(await dialog.say(null), /^421 4\.4\.2 /)
  const other = await openDialog(port)
  for (let minutes = 5; minutes < 60; minutes += 5) {
    server.mailBegins(ids[1] ?? '')
    server.mailDone(ids[1] ?? '')
    after(5)
  }
  t.match(await other.say('NOOP'), /^250 /)
})
