/**
 * half-done - the process is ended with SIGKILL after each step of a join and of a removal except the last, once.
 * Within the hour each user is a member with the account on their list, or is deleted.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { homeShard } from '../../../cluster/id.ts'
import { membersKey } from '../../../src/state/dashboard/places.ts'
import { Browser } from '../../support/clients/browser.ts'
import { until } from '../../support/machine/until.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { passTime } from '../../support/store/pass-time.ts'

const PASSWORD = 'correct horse battery'
const WAIT_MS = 30_000
const DEATH_MS_MAX = 10_000
/** The order after which the process dies, and whether the user is a member then. */
const JOINS = { 'add-user': false, 'begin-join': false, 'use-account-link': true }
const REMOVALS = { 'begin-leave': true, 'change-member': false }

t.jobs = 1
const { redis, settings, firstRun, end } = await setScene()
const store = new Redis(redis.socketPath)
const { accountId } = firstRun.account
let host: Host = await startHost(settings)
t.teardown(async () => {
  await host.kill('SIGKILL')
  store.disconnect()
  await end()
})
const origin = `http://127.0.0.1:${settings.HTTP_PORT}`
/** A process that has died takes no request of the next one with it. */
const CLOSE = { connection: 'close' }
const ada = new Browser(origin)
const entry = { token: Browser.tokenOf(firstRun.dashboardUrl), address: 'ada@a.example', name: 'Ada' }
await ada.call('POST /links/consume', { ...entry, password: PASSWORD }, CLOSE)

async function linkFor(address: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${settings.OPERATOR_PORT}/v1/operator/accounts/${accountId}/link`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${firstRun.operatorToken}`,
      'content-type': 'application/json',
      connection: 'close',
    },
    body: JSON.stringify({ address, role: 'member' }),
  })
  const { url } = (await answer.json()) as { url: string }
  return Browser.tokenOf(url)
}

/** Each from a separate client, because limits are not tested here. */
let clients = 0
const browser = () => {
  clients += 1
  return new Browser(origin, `192.0.2.${clients}`)
}
const join = (token: string) => browser().call('POST /links/consume', { token, name: 'Ben', password: PASSWORD }, CLOSE)
const signIn = (address: string) => browser().call('POST /session', { address, password: PASSWORD }, CLOSE)

/** Starts a process that dies after an order, and sends it a request. Returns whether it died of that. */
async function dieAfter(order: string, ask: () => Promise<unknown>): Promise<boolean> {
  await host.kill('SIGTERM')
  host = await startHost(settings, { point: `after ${order}` })
  await ask().catch(() => null)
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), DEATH_MS_MAX).unref())
  return Promise.race([host.exited.then(() => true), late])
}

/** The stored id and row of the user with an address; null: nothing. */
async function rowOf(address: string): Promise<{ userId: string; accounts: string[]; unsure: string } | null> {
  for (const key of await store.keys('*:user:*')) {
    const [found, accounts, unsure] = await store.hmget(key, 'address', 'accounts', 'unsure')
    if (found === address)
      return { userId: key.slice(-36), accounts: JSON.parse(accounts ?? '[]'), unsure: unsure ?? '' }
  }
  return null
}

const addressOf = (order: string, what: 'join' | 'leave') => `${order}@${what}.example`
for (const order of Object.keys(REMOVALS)) {
  const address = addressOf(order, 'leave')
  await join(await linkFor(address))
}

for (const order of Object.keys(JOINS)) {
  t.test(`half-done: killed after ${order} of a join [crash.join.${order}]`, async (t) => {
    const address = addressOf(order, 'join')
    t.ok(await dieAfter(order, async () => join(await linkFor(address))), 'it was killed there')
    t.ok(await rowOf(address), 'something is left')
  })
}
for (const order of Object.keys(REMOVALS)) {
  t.test(`half-done: killed after ${order} of a removal [crash.leave.${order}]`, async (t) => {
    const address = addressOf(order, 'leave')
    const { userId } = (await rowOf(address)) ?? {}
    const remove = () => ada.call(`DELETE /members/${userId}`, undefined, CLOSE)
    t.ok(await dieAfter(order, remove), 'it was killed there')
    t.ok(await rowOf(address), 'something is left')
  })
}

t.test('half-done: within the hour all of it has ended in one of the two complete states [member.index]', async (t) => {
  await host.kill('SIGTERM')
  await passTime(store)
  host = await startHost(settings)
  const joined = Object.entries(JOINS).map(([order, isMember]) => ({ address: addressOf(order, 'join'), isMember }))
  const left = Object.entries(REMOVALS).map(([order, isMember]) => ({ address: addressOf(order, 'leave'), isMember }))
  for (const { address, isMember } of [...joined, ...left]) {
    await t.test(`half-done: ${address}`, async (t) => {
      const row = await until(async () => {
        const found = await rowOf(address)
        const isWhole = isMember ? found?.unsure === '{}' : found === null
        return isWhole ? { found } : null
      }, WAIT_MS)
      t.equal(row.found !== null, isMember)
      t.equal((await signIn(address)).status, isMember ? 200 : 401)
      if (row.found === null) {
        // Nothing from before is in the user's way.
        t.match(await join(await linkFor(address)), { status: 200, json: { user: { name: 'Ben' } } })
        return
      }
      t.same(row.found.accounts, [accountId])
      t.equal(await store.hexists(membersKey(homeShard(accountId), accountId), row.found.userId), 1)
    })
  }
  t.equal((await ada.call('GET /session', undefined, CLOSE)).status, 200)
})
