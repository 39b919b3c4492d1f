/**
 * spelling - addresses go out, and are read back, as the request of their message wrote them, whoever else named the
 * person before or after, and however often it is attempted; a person's row is in lower case.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { withoutSum } from '../../cluster/sum.ts'
import { until } from '../support/machine/until.ts'
import { startDelivery } from '../support/service/delivery.ts'
import { dumpRedis } from '../support/store/redis-dump.ts'

const delivery = await startDelivery()
const { service, destination, send, message, messageWhen, operate } = delivery
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await delivery.stop()
})
const { token, serverId } = service.firstRun.liveServer
const FROM = { email: 'Shop.Berlin@acme.example', name: 'Shop' }
const LATER = '450 4.2.0 <Ann.Lee@spelled.test>: later'

/** Spellings of one person and one sender, one message each, in this order. */
const MESSAGES: readonly (readonly [from: string, to: string])[] = [
  ['SHOP.BERLIN@acme.example', 'ANN.LEE@spelled.test'],
  ['Shop.Berlin@ACME.example', 'Ann.Lee@Spelled.TEST'],
  ['shop.berlin@acme.example', 'ann.lee@spelled.test'],
]
/** The local part as written, the domain in lower case. */
const shown = (address: string) => address.replace(/@.*/, (domain) => domain.toLowerCase())

/** Reads the server's events from now on. */
async function hearEvents(): Promise<{ recipients: string[]; end(): void }> {
  const controller = new AbortController()
  const { operatorPort } = service.config
  const response = await fetch(`http://127.0.0.1:${operatorPort}/v1/operator/servers/${serverId}/events`, {
    headers: { Authorization: `Bearer ${service.firstRun.operatorToken}` },
    signal: controller.signal,
  })
  const recipients: string[] = []
  const read = async () => {
    let text = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      recipients.splice(0, Infinity, ...Array.from(text.matchAll(/"recipient":"([^"]*)"/g), ([, one]) => one as string))
    }
  }
  read().catch(() => undefined)
  return { recipients, end: () => controller.abort() }
}

t.test('spelling: each message has its own, at each attempt and wherever it is read', async (t) => {
  let isLater = true
  const mx = await destination('spelled.test', { rcpt: () => (isLater ? LATER : '250 2.1.5 Ok') })
  const heard = await hearEvents()
  t.teardown(heard.end)
  const ids: string[] = []
  for (const [from, to] of MESSAGES) {
    ids.push(await send([to, 'bob@spelled.test'], { from: { ...FROM, email: from } }))
    await messageWhen(ids.at(-1) as string, ({ recipients }) => recipients.every((one) => one.attempts === 1))
  }
  const rcpts = () => mx.sessions.flatMap(({ commands }) => commands.filter((line) => /^RCPT TO:<ann/i.test(line)))
  const asked = MESSAGES.map(([, to]) => `RCPT TO:<${shown(to)}>`).sort()
  t.same(rcpts().sort(), asked, 'the first attempts')

  isLater = false
  t.equal((await operate('POST /queue/retry', { domain: 'spelled.test' })).status, 200)
  for (const [place, id] of ids.entries()) {
    const [from, to] = (MESSAGES[place] as [string, string]).map(shown)
    const seen = await messageWhen(id, ({ status }) => status === 'delivered')
    t.equal(seen.from.email, from)
    t.same(
      seen.recipients.map(({ recipient }) => recipient),
      [to, 'bob@spelled.test'],
    )
    t.ok(seen.events.every(({ recipient }) => recipient === to || recipient === 'bob@spelled.test'))
    t.equal(
      seen.events.find(({ event, recipient }) => event === 'deferred' && recipient === to)?.details.response,
      LATER.replace('Ann.Lee@spelled.test', to as string),
    )
    const found = await service.call('POST /v1/messages/search', { token, body: { recipient: to, from } })
    t.same(
      found.json.messages.find(({ messageId }: { messageId: string }) => messageId === id).recipients[0].recipient,
      to,
    )
    t.equal(found.json.messages.length, MESSAGES.length, 'whatever the case')
  }
  t.same(rcpts().sort(), [...asked, ...asked].sort(), 'the second attempts')
  const bodies = mx.sessions.flatMap(({ messages }) => messages)
  for (const address of MESSAGES.flat().map(shown))
    t.ok(
      bodies.some((body) => body.includes(address)),
      address,
    )
  const wanted = MESSAGES.flatMap(([, to]) => [shown(to), shown(to)]).sort()
  const events = () => heard.recipients.filter((one) => /^ann/i.test(one)).sort()
  await until(() => events().length >= wanted.length, 20_000)
  t.same(events(), wanted, 'the events')

  const persons = JSON.stringify([...(await dumpRedis(redis, '*:person:*'))])
  t.match(
    persons,
    /ann\.lee@spelled\.test.*shop\.berlin@acme\.example|shop\.berlin@acme\.example.*ann\.lee@spelled\.test/,
  )
  t.notMatch(persons, /Ann|ANN|Shop|SHOP/)
  const heads = JSON.stringify([...(await dumpRedis(redis, '*:head:*'))])
  t.equal(heads.match(/ANN\.LEE/g)?.length, 1)
  t.notMatch(heads, /ann\.lee|shop\.berlin/, 'what is in lower case costs nothing')
})

t.test('spelling: a row of before shows its own until it goes', async (t) => {
  const [key = ''] = await redis.keys('*:person:*')
  const rows = Object.entries(await redis.hgetall(key))
  const [number = ''] = rows.find(([, row]) => withoutSum(row, 'address') === 'bob@spelled.test') ?? []
  await redis.hset(key, number, 'Bob@spelled.test')
  const { json } = await service.call('POST /v1/messages/search', { token, body: { recipient: 'bob@spelled.test' } })
  const [newest] = json.messages
  t.equal((await message(newest.messageId)).recipients[1]?.recipient, 'Bob@spelled.test')
})
