/** queue - the commands of the queue as an operator calls them, against a running service. */
import t from 'tap'
import { startCommandLine } from '../../support/service/command-line.ts'
import { startDelivery } from '../../support/service/delivery.ts'

interface AuditEntry {
  readonly act: string
  readonly targets: { readonly domain?: string }
}

const delivery = await startDelivery()
const commands = await startCommandLine()
const { service, send, messageWhen, destination } = delivery
t.teardown(async () => {
  commands.stop()
  await delivery.stop()
})

async function queue(...args: string[]) {
  const env = {
    OPERATOR_PORT: String(service.config.operatorPort),
    SENDWRIGHT_OPERATOR_TOKEN: service.firstRun.operatorToken,
  }
  const url = ['--url', `http://127.0.0.1:${service.config.operatorPort}`]
  return await commands.run(['queue', ...args, ...url], env)
}

t.test('sendwright queue: held, listed, released [queue.list]', async (t) => {
  await destination('a.test')
  t.match(await queue('hold', 'a.test', '--note', 'they asked'), {
    code: 0,
    out: 'a.test: 0 held, with all that comes later\n',
  })
  const id = await send(['ann@a.test', 'bob@a.test'])
  const listed = await queue()
  t.match(listed.out, /^DESTINATION +WAITING +DEFERRED +HELD +OLDEST +LAST ANSWER\n/)
  t.match(listed.out, /^a\.test +2 +0 +2 +20\d\d-/m)
  t.match(JSON.parse((await queue('--json')).out), { destinations: [{ domain: 'a.test', waiting: 2, held: 2 }] })
  t.match(await queue('release', 'a.test'), { code: 0, out: 'a.test: 2 released\n' })
  await messageWhen(id, ({ status }) => status === 'delivered')
})

t.test('sendwright queue: retried and dropped [queue.retry]', async (t) => {
  const mx = await destination('b.test', { rcpt: '450 4.2.0 later' })
  const id = await send(['ann@b.test'])
  await messageWhen(id, ({ status }) => status === 'deferred')
  t.match((await queue('show', 'b.test')).out, new RegExp(`^${id} 0 +deferred +1 +\\S+ +450 4\\.2\\.0 later$`, 'm'))
  t.match(JSON.parse((await queue('show', 'b.test', '--limit', '1', '--json')).out), { messages: [{ messageId: id }] })
  const { accountId } = service.firstRun.account
  t.match((await queue('accounts', 'b.test')).out, new RegExp(`^${accountId} +1 +1 +0 +20\\d\\d-`, 'm'))
  mx.script({ rcpt: 'hang' })
  mx.sever()
  t.match(await queue('retry', 'b.test'), { code: 0, out: 'b.test: 1 due now\n' })
  await messageWhen(id, ({ recipients }) => recipients[0]?.attempts === 2)
  t.match(await queue('drop', 'b.test', '--json'), { code: 0, out: '{"recipients":1,"held":false}\n' })
  await messageWhen(id, ({ status }) => status === 'bounced')
  t.match(await queue('drop'), { code: 2 })
})

t.test(
  'sendwright queue: a retry counts each recipient once, and says if the destination is held [queue.retry]',
  async (t) => {
    await destination('c.test', { rcpt: '450 4.2.0 later' })
    const people = Array.from({ length: 6 }, (_, n) => `p${n}@c.test`)
    const id = await send(people)
    await messageWhen(id, ({ status }) => status === 'deferred')
    t.match(await queue('retry', 'c.test'), { code: 0, out: 'c.test: 6 due now\n' })
    const { entries } = (await delivery.operate('GET /audit?limit=100')).json as { entries: AuditEntry[] }
    const retries = entries.filter(({ act, targets }) => act === 'retryQueue' && targets.domain === 'c.test')
    t.equal(retries.length, 1, 'one entry in the audit log')
    await messageWhen(id, ({ recipients }) => recipients.every(({ attempts }) => attempts === 2))
    await queue('hold', 'c.test')
    t.match(await queue('retry', 'c.test'), {
      code: 0,
      out: 'c.test: 6 due once the destination is released: it is held\n',
    })
  },
)
