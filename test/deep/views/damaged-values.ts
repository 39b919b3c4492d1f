/**
 * Stored values of which a bit has changed, one of each kind: what reads them answers 503 `data_damaged`, never a wrong
 * text or address; other messages are served; doctor and the check of all values name them.
 */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { unpackBucket } from '../../../src/state/broadcast/content.ts'
import { packDeliveries } from '../../../src/state/webhook/block.ts'
import { checkStore } from '../../../src/store/repair/check-store.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})
const { token } = service.firstRun.testServer
const { operatorToken } = service.firstRun
const read = (id: string) => service.call(`GET /v1/messages/${id}`, { token })
const damages: { key: string; field: string | null }[] = []

/** Sends a message whose texts have a name. Out: its id. */
async function send(name: string): Promise<string> {
  const texts = { subject: `Subject of ${name}`, text: `Text of ${name}` }
  const body = { from: 'shop@simulator.test', to: [`${name}@simulator.test`], ...texts }
  const { json } = await service.call('POST /v1/email', { token, body })
  return json.messageId
}

/** Changes one bit of the value that contains the text, in a hash whose key matches. */
async function damage(t: Test, of: RegExp, text: string): Promise<void> {
  for (const key of (await redis.keys('*')).filter((one) => of.test(one)))
    for (const [field, value] of Object.entries(await redis.hgetallBuffer(key))) {
      const at = value.indexOf(text)
      if (at < 0) continue
      value[at] = (value[at] ?? 0) ^ 1
      await redis.hset(key, field, value)
      damages.push({ key, field })
      return
    }
  t.fail(`no value with ${text} under ${of}`)
}

const sound = await send('sound')

t.test('damaged values: nothing is found in a sound store, with a broadcast that waits', async (t) => {
  const { json: stream } = await service.call('POST /v1/streams', { token, body: { kind: 'broadcast', name: 'News' } })
  const { status } = await service.call('POST /v1/broadcasts', {
    token,
    body: {
      streamId: stream.streamId,
      from: 'news@simulator.test',
      subject: 'News',
      text: 'Dear {{name}}',
      attachments: [{ name: 'a.bin', content: Buffer.alloc(600_000, 'a').toString('base64') }],
      sendAt: new Date(Date.now() + 3_600_000).toISOString(),
      messages: [{ to: 'member@simulator.test', substitutions: { name: 'Member' } }],
    },
  })
  t.equal(status, 202)
  await redis.hset('{s000}:user:x', 'name', 'A name~~abcdef')
  const { values, tornShards } = await checkStore(service.config)
  await redis.del('{s000}:user:x')
  t.match({ values, tornShards }, { values: { damaged: 0, places: [] }, tornShards: [] })
  t.ok(values.checked > 20)
})

t.test('damaged values: a subject, an address or a text is an error, not a wrong text', async (t) => {
  for (const [name, of, text] of [
    ['head', /:head:/, 'Subject of head'],
    ['address', /:person:/, 'address@simulator.test'],
    ['body', /:bodies:/, 'Text of body'],
  ] as const) {
    const id = await send(name)
    t.match(await read(id), { status: 200, json: { subject: `Subject of ${name}`, text: `Text of ${name}` } })
    await damage(t, of, text)
    t.match(await read(id), { status: 503, json: { error: 'data_damaged' } }, name)
  }
  t.match(await read(sound), { status: 200, json: { text: 'Text of sound' } }, 'others are served')
})

t.test('damaged values: counters of an account are an error', async (t) => {
  const { accountId } = service.firstRun.account
  await damage(t, /:counters$/, '"testMonth"')
  const answer = await service.operate(`GET /v1/operator/accounts/${accountId}`, { token: operatorToken })
  t.match(answer, { status: 503, json: { error: 'data_damaged' } })
})

t.test('damaged values: the address of a recipient who waits is found', async (t) => {
  for (const key of await redis.keys('*:content:*:r0')) {
    const bucket = (await redis.getBuffer(key)) as Buffer
    const at = bucket.indexOf('member@')
    bucket[at] = (bucket[at] ?? 0) ^ 1
    await redis.set(key, bucket)
    damages.push({ key, field: null })
    t.throws(() => unpackBucket(bucket.toString()), { message: 'A stored value is damaged' })
  }
  t.equal(damages.at(-1)?.field, null)
})

t.test('damaged values: doctor and the check of the store name them [operator.health]', async (t) => {
  const { json } = await service.operate('GET /v1/operator/health', { token: operatorToken })
  const finding = json.findings.find(({ name }: { name: string }) => name === 'store')
  t.match(finding, { status: 'failed', message: /values were damaged.*head|content|address/, fix: /doctor --deep/ })
  const name = '019aa5f0-0000-7000-8000-000000000000.20261121-0.Td.AaIOGHMWcACAAETJwGeK1g'
  const block = packDeliveries([{ name, record: '' }])
  const blocks = '{s000}:blocks:webhook:20261121-0'
  await redis.zadd(blocks, 1, block, 2, `x${block.slice(1)}`)
  damages.push({ key: blocks, field: '2' })
  const { values } = await checkStore(service.config)
  await redis.del(blocks)
  t.equal(values.damaged, damages.length)
  const byKey = (one: { key: string }, other: { key: string }) => (one.key < other.key ? -1 : 1)
  t.same([...values.places].sort(byKey), damages.sort(byKey))
})

t.test('damaged values: a command that needs one accepts nothing, and others of its shard do', async (t) => {
  const sendAs = (key: string) => {
    const texts = { from: 'shop@simulator.test', subject: 'Once', text: `Text under ${key}` }
    const body = { ...texts, to: ['keyed@simulator.test'] }
    return service.call('POST /v1/email', { token, body, headers: { 'Idempotency-Key': key } })
  }
  const { json } = await sendAs('sound')
  await sendAs('damaged')
  const [key = ''] = await redis.keys('*:idempotency:*')
  for (const name of await redis.keys('*:idempotency:*'))
    for (const [field, value] of Object.entries(await redis.hgetall(name)))
      if (!value.includes(shortId(json.messageId))) await redis.hset(name, field, value.replace(/[0-9](?=\d)/, '-'))
  await service.restart()
  const log = await redis.keys('*:log:*')
  const accepted = async () => (await Promise.all(log.map((one) => redis.xlen(one)))).reduce((sum, n) => sum + n, 0)
  const before = await accepted()
  const answers = await Promise.all([sendAs('damaged'), sendAs('sound'), sendAs('other'), sendAs('damaged')])
  const damaged = { status: 503, json: { error: 'data_damaged' } }
  t.match(answers[0], damaged)
  t.match(answers[1], { status: 200, json: { messageId: json.messageId } }, 'a replay')
  t.match(answers[2], { status: 200 })
  t.match(answers[3], damaged)
  t.equal(await accepted(), before + 1)
  const shard = key.slice(0, key.indexOf(':'))
  t.same((await redis.xrange(`${shard}:poison`, '-', '+')).length, 2, 'each is recorded')
  t.same(await redis.keys('*:unborne:*'), [], 'its content is not kept: the caller can repeat it')
})
