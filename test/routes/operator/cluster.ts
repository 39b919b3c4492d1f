/** cluster - what the operator sees of shards and entities. */
import { Redis } from 'ioredis'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
const { account, liveServer, operatorToken: token } = service.firstRun
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})

const operate = (what: string) => service.operate(what.replace(' ', ' /v1/operator'), { token })

t.test('cluster: every shard has an owner that lives [operator.shards]', async (t) => {
  const { json } = await operate('GET /shards')
  t.equal(json.shards.length, 256)
  const [owner, ...others] = json.workers.filter(({ takesShards }: { takesShards: boolean }) => takesShards)
  t.same(others, [])
  t.match(owner, { pid: Number, isAlive: true, isLeaving: false, shards: 256 })
  const [first] = json.shards
  t.match(first, { shard: 0, state: 'owned', owner: owner.worker, waiting: 0, oldestWaitingAt: null })
  t.ok(first.seq > 0)
  t.equal(first.journalSeq, first.seq)
  t.ok(Date.parse(first.dueAt) > Date.now(), 'its sweeps are due tomorrow')
})

t.test(
  'cluster: a shard whose journal contradicts is torn, one without an owner is free [operator.shards]',
  async (t) => {
    await redis.xadd('{s200}:journal', '999-0', 'c', 'x')
    await redis.hset('{s201}:meta', 'owner', 'gone')
    const { shards } = (await operate('GET /shards')).json
    t.match(shards[200], { state: 'torn', journalSeq: 999 })
    t.match(shards[201], { state: 'free', owner: 'gone' })
    await redis.del('{s200}:journal')
  },
)

t.test('cluster: the entries in a mailbox, and their age [operator.shards]', async (t) => {
  let round = 0
  // The owner may take them up before they are looked at: then others come.
  const seen = await until(async () => {
    round += 1
    const parcel = redis.multi().del('{s202}:mailbox')
    for (const [at, count] of ['3', '2', 'odd'].entries())
      parcel.xadd('{s202}:mailbox', `${round}-${at + 1}`, 'parcel', 'loyw3u3z294a3ijtgk', 'to', 'w', 'n', count)
    await parcel.exec()
    const { shards } = (await operate('GET /shards')).json
    return shards[202].waiting === 6 ? shards[202] : null
  }, 10_000)
  t.match(seen.oldestWaitingAt, /^20/)
  await redis.del('{s202}:mailbox')
})

t.test('cluster: the last states of an entity, without secrets [operator.entity]', async (t) => {
  await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, { token, body: { monthlyCap: 9 } })
  const { json } = await operate(`GET /entities/account/${account.accountId.toUpperCase()}`)
  t.match(json, {
    kind: 'account',
    id: account.accountId,
    shard: 0,
    states: [
      { command: 'patch-account', version: 1, events: [{ type: 'patched' }], state: { monthlyCap: 9 } },
      { command: 'create-account', state: { monthlyCap: 10_000, keys: [{ tokenId: String }] } },
    ],
  })
  t.notMatch(JSON.stringify(json), '"hash"')
  t.equal((await operate(`GET /entities/server/${liveServer.serverId}`)).json.states[0].state.name, 'Live')
  for (const path of [
    'account/x',
    `server/${account.accountId}`,
    `mailbox/${account.accountId}`,
    `meta/${account.accountId}`,
  ])
    t.equal((await operate(`GET /entities/${path}`)).status, 404, path)
})
