/** accept - every refusal and their order, limits to the exact message, periods that roll over. */

import t from 'tap'
import { createAccount } from '../../../src/actors/account/create-account.ts'
import type { SendBody, SendReply } from '../../../src/actors/message/send.ts'
import { sendingKey } from '../../../src/state/keys.ts'
import type { StreamKind } from '../../../src/state/stream.ts'
import {
  acceptedIds,
  changeState,
  hmacOf,
  LIVE_KEY,
  makeItem,
  makeRecipient,
  makeTenant,
  SENDING_DOMAIN,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)
const MINUTE_END = Date.UTC(2026, 10, 20, 12, 1)
const MONTH_END = Date.UTC(2026, 11, 1)
const MAX = 10_485_760
const KEY = { hash: hmacOf('key'), fingerprint: 'f'.repeat(64) }

/** One fault of a request that has them all; `repair` takes it away. */
interface Fault {
  readonly code: string
  readonly extra?: object
  repair(world: World, tenant: Tenant, body: Partial<SendBody>): Partial<SendBody>
}

function stream(changes: {
  kind?: StreamKind
  archivedAtMs?: number | null
  pausedAtMs?: number | null
}): Fault['repair'] {
  return (world, tenant, body) => {
    changeState(world, 'stream', tenant.live.streamId, changes)
    return body
  }
}

function account(changes: object): Fault['repair'] {
  return (world, tenant, body) => {
    changeState(world, 'account', tenant.accountId, changes)
    return body
  }
}

const FAULTS: readonly Fault[] = [
  { code: 'unauthorized', repair: (_world, _tenant, body) => ({ ...body, keyHash: LIVE_KEY }) },
  { code: 'idempotency_key_reused', repair: (_world, _tenant, body) => ({ ...body, idempotency: null }) },
  { code: 'payment_required', repair: account({ subscriptionActive: true }) },
  { code: 'account_not_active', repair: account({ status: 'paused' }) },
  { code: 'account_paused', repair: account({ status: 'active' }) },
  {
    code: 'stream_not_found',
    extra: { index: 1 },
    repair: (_world, _tenant, body) => ({
      ...body,
      messages: (body.messages ?? []).map((item) => ({ ...item, streamId: null })),
    }),
  },
  { code: 'stream_kind_not_allowed', extra: { index: 0 }, repair: stream({ kind: 'broadcast' }) },
  {
    code: 'domain_not_verified',
    extra: { domain: 'other.example', index: 1 },
    repair: (_world, _tenant, body) => ({ ...body, messages: [makeItem(), makeItem({ builtBytes: MAX + 1 })] }),
  },
  {
    code: 'message_too_large',
    extra: { sizeBytes: MAX + 1, max: MAX, index: 1 },
    repair: (_world, _tenant, body) => ({ ...body, messages: [makeItem(), makeItem({ builtBytes: MAX })] }),
  },
  { code: 'stream_archived', extra: { index: 0 }, repair: stream({ archivedAtMs: null }) },
  { code: 'stream_paused', extra: { pausedAtMs: 7, index: 0 }, repair: stream({ pausedAtMs: null }) },
  {
    code: 'cap_reached',
    extra: { scope: 'account', period: 'month', limit: 1, used: 0, requested: 2, resetsAtMs: MONTH_END },
    repair: account({ monthlyCap: 2 }),
  },
  {
    code: 'rate_limited',
    extra: { scope: 'account', period: 'minute', limit: 1, used: 0, requested: 2, resetsAtMs: MINUTE_END },
    repair: account({ perMinuteLimit: 2 }),
  },
]

t.test('accept: a request with every fault is corrected one fault at a time [refusal.order]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { idempotency: { ...KEY, fingerprint: 'e'.repeat(64) } })
  world.counters.clear()
  const other = makeItem({ from: { ...makeItem().from, domain: 'other.example' }, builtBytes: MAX + 1 })
  let body: Partial<SendBody> = {
    keyHash: 'revoked',
    idempotency: KEY,
    billing: true,
    messages: [makeItem(), { ...other, streamId: tenant.test.streamId }],
    batch: true,
  }
  changeState(world, 'account', tenant.accountId, {
    subscriptionActive: false,
    status: 'closed',
    monthlyCap: 1,
    perMinuteLimit: 1,
  })
  changeState(world, 'stream', tenant.live.streamId, { kind: 'inbound', archivedAtMs: 5, pausedAtMs: 7 })
  const isLog = (key: string) => /:event(s|-slices):/.test(key)
  const stored = () =>
    JSON.stringify([...world.counters, ...world.items.keys(), ...world.keyNames().filter((key) => !isLog(key))])
  const before = stored()
  for (const { code, extra, repair } of FAULTS) {
    const reply = send(world, tenant, body)
    const streamId = code === 'stream_archived' || code === 'stream_paused' ? { streamId: tenant.live.streamId } : {}
    t.same(reply, {
      kind: 'refused',
      code,
      extra: { ...streamId, ...(code === 'domain_not_verified' && { mode: 'live' }), ...extra },
    })
    t.same(
      world.ops.filter(({ key }) => code !== 'cap_reached' || !isLog(key)),
      [],
    )
    // The first refusal by a cap is announced, and that is stored. A refusal leaves nothing else.
    if (code === 'cap_reached') world.counters.clear()
    body = repair(world, tenant, body)
  }
  t.equal(stored(), before)
  t.equal(acceptedIds(send(world, tenant, body)).length, 2)
})

t.test('accept: refusals of a single message name no index, of a batch of one they do', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const messages = [makeItem({ builtBytes: MAX + 1 })]
  const extra = { sizeBytes: MAX + 1, max: MAX }
  t.same(send(world, tenant, { messages }), { kind: 'refused', code: 'message_too_large', extra })
  const batch = { kind: 'refused', code: 'message_too_large', extra: { ...extra, index: 0 } }
  t.same(send(world, tenant, { messages, batch: true }), batch)
})

const STATUSES: readonly { status: string; test: boolean; expected: string }[] = [
  { status: 'active', test: false, expected: 'accepted' },
  { status: 'active', test: true, expected: 'accepted' },
  { status: 'pending', test: false, expected: 'account_not_active' },
  { status: 'pending', test: true, expected: 'accepted' },
  { status: 'paused', test: false, expected: 'account_paused' },
  { status: 'paused', test: true, expected: 'account_paused' },
  { status: 'closed', test: false, expected: 'account_not_active' },
  { status: 'closed', test: true, expected: 'account_not_active' },
]

t.test('accept: state of the account, live and test', async (t) => {
  for (const { status, test, expected } of STATUSES) {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    changeState(world, 'account', tenant.accountId, { status })
    t.equal(codeOf(send(world, tenant, { test })), expected, `${status} ${test}`)
  }
})

const DOMAINS: readonly { name: string; domain: string; test: boolean; expected: string }[] = [
  { name: 'verified, live', domain: SENDING_DOMAIN, test: false, expected: 'accepted' },
  { name: 'verified, test', domain: SENDING_DOMAIN, test: true, expected: 'accepted' },
  { name: 'unknown, test', domain: 'other.example', test: true, expected: 'domain_not_verified' },
  { name: 'under a verified one', domain: `mail.${SENDING_DOMAIN}`, test: false, expected: 'domain_not_verified' },
  { name: 'simulator, test', domain: 'simulator.test', test: true, expected: 'accepted' },
  { name: 'simulator, live', domain: 'simulator.test', test: false, expected: 'domain_not_verified' },
]

t.test('accept: domain of the sender', async (t) => {
  for (const { name, domain, test, expected } of DOMAINS) {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const messages = [makeItem({ from: { ...makeItem().from, domain } })]
    t.equal(codeOf(send(world, tenant, { test, messages })), expected, name)
  }
})

t.test('accept: the moment a domain leaves the list no send from it passes', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  world.keys.delete(sendingKey(world.shard, tenant.accountId))
  t.equal(codeOf(send(world, tenant)), 'domain_not_verified')
})

t.test(
  'accept: messages of a batch use different streams, and the first refusing step names the message',
  async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const state = world.states.get(`stream:${tenant.live.streamId}`) as object
    const streamId = '0193b2a4-6c00-7017-8000-0123456789ab'
    const ref = { kind: 'stream', id: streamId }
    world.seedState(ref, { ...state, streamId, isDefault: false })
    const messages = [makeItem(), makeItem({ streamId }), makeItem({ streamId: tenant.test.streamId })]
    t.equal(acceptedIds(send(world, tenant, { messages: messages.slice(0, 2), batch: true })).length, 2)
    world.seedState(ref, { ...state, streamId, archivedAtMs: 5 })
    const refused = (count: number) => send(world, tenant, { messages: messages.slice(0, count), batch: true })
    t.same(refused(2), { kind: 'refused', code: 'stream_archived', extra: { streamId, index: 1 } })
    t.same(refused(3), { kind: 'refused', code: 'stream_not_found', extra: { index: 2 } })
    world.seedState(ref, { ...state, streamId, pausedAtMs: 5 })
    t.same(refused(2), { kind: 'refused', code: 'stream_paused', extra: { streamId, pausedAtMs: 5, index: 1 } })
    world.seedState(ref, { ...state, streamId, kind: 'inbound' })
    t.same(refused(2), { kind: 'refused', code: 'stream_kind_not_allowed', extra: { index: 1 } })
  },
)

t.test('accept: a stream, or a key, of someone else', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const [other] = world.run(createAccount, {
    name: 'Other',
    status: 'active',
    accountKey: null,
    operatorKey: null,
    servers: [{ name: 'Live', mode: 'live', key: { hash: 'other key', prefix: 'sk_other' } }],
  }).servers
  t.equal(
    codeOf(send(world, tenant, { messages: [makeItem({ streamId: other?.streamId ?? '' })] })),
    'stream_not_found',
  )
  t.equal(codeOf(send(world, tenant, { keyHash: 'other key' })), 'unauthorized')
  t.equal(codeOf(send(world, tenant, { serverId: other?.serverId ?? '', keyHash: 'other key' })), 'unauthorized')
  t.equal(codeOf(send(world, tenant, { accountId: 'nobody' })), 'unauthorized')
})

t.test('accept: an inactive subscription matters only with billing', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'account', tenant.accountId, { subscriptionActive: false })
  t.equal(codeOf(send(world, tenant)), 'accepted')
  t.equal(codeOf(send(world, tenant, { billing: true })), 'payment_required')
})

t.test('accept: exactly the limit passes, and the next minute starts from zero [limit.refusal]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'account', tenant.accountId, { perMinuteLimit: 5 })
  for (let used = 0; used < 5; used += 1) t.equal(codeOf(send(world, tenant)), 'accepted')
  for (const nowMs of [NOW_MS, MINUTE_END - 1]) {
    world.nowMs = nowMs
    const extra = { scope: 'account', period: 'minute', limit: 5, used: 5, requested: 1, resetsAtMs: MINUTE_END }
    t.same(send(world, tenant), { kind: 'refused', code: 'rate_limited', extra })
  }
  world.nowMs = MINUTE_END
  t.equal(codeOf(send(world, tenant)), 'accepted')
  world.nowMs = MINUTE_END - 1
  t.equal(codeOf(send(world, tenant)), 'rate_limited', 'the clock goes back into the full minute')
})

t.test('accept: a month’s cap holds to its last millisecond', async (t) => {
  const world = new World(MONTH_END - 60_000)
  const tenant = makeTenant(world)
  changeState(world, 'account', tenant.accountId, { monthlyCap: 2 })
  t.equal(codeOf(send(world, tenant, { messages: [makeItem(), makeItem()] })), 'accepted')
  world.nowMs = MONTH_END - 1
  t.equal(codeOf(send(world, tenant)), 'cap_reached')
  world.nowMs = MONTH_END
  t.equal(codeOf(send(world, tenant)), 'accepted')
})

t.test('accept: all or nothing: a request that needs more than is left takes nothing', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'account', tenant.accountId, { perMinuteLimit: 5 })
  const recipients = ['a', 'b', 'c'].map((name) => makeRecipient(`${name}@example.net`))
  t.equal(codeOf(send(world, tenant, { messages: [makeItem({ recipients })] })), 'accepted')
  const refused = send(world, tenant, { messages: [makeItem({ recipients })] })
  const extra = { scope: 'account', period: 'minute', limit: 5, used: 3, requested: 3, resetsAtMs: MINUTE_END }
  t.same(refused, { kind: 'refused', code: 'rate_limited', extra })
  t.equal(codeOf(send(world, tenant, { messages: [makeItem(), makeItem()] })), 'accepted')
})

const NAMED: readonly { name: string; account: object; server: object; scope: string; period: string }[] = [
  {
    name: 'server and account, minute',
    account: { perMinuteLimit: 1 },
    server: { perMinuteLimit: 1 },
    scope: 'server',
    period: 'minute',
  },
  {
    name: 'server and account, month',
    account: { monthlyCap: 1 },
    server: { monthlyCap: 1 },
    scope: 'server',
    period: 'month',
  },
  {
    name: 'server minute, account month',
    account: { monthlyCap: 1 },
    server: { perMinuteLimit: 1 },
    scope: 'account',
    period: 'month',
  },
  { name: 'server month alone', account: {}, server: { monthlyCap: 1 }, scope: 'server', period: 'month' },
  {
    name: 'a server’s limit above the account’s',
    account: { perMinuteLimit: 1 },
    server: { perMinuteLimit: 9 },
    scope: 'account',
    period: 'minute',
  },
]

for (const { name, account: figures, server, scope, period } of NAMED) {
  t.test(`accept: of full limits (${name}) the ${scope}'s ${period} is named [limit.refusal]`, async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    changeState(world, 'account', tenant.accountId, figures)
    changeState(world, 'server', tenant.live.serverId, server)
    t.equal(codeOf(send(world, tenant)), 'accepted')
    const reply = send(world, tenant)
    t.match(reply, { kind: 'refused', extra: { scope, period, limit: 1, used: 1 } })
  })
}

t.test('accept: test mail counts on the shared test limits alone', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'account', tenant.accountId, { testPerMinuteLimit: 2, testMonthlyCap: 3, perMinuteLimit: 1 })
  const first = send(world, tenant, { test: true })
  t.same(first.kind === 'accepted' && first.rate, [{ scope: 'test', limit: 2, left: 1, resetsAtMs: MINUTE_END }])
  t.equal(codeOf(send(world, tenant, { test: true })), 'accepted')
  t.match(send(world, tenant, { test: true }), { code: 'rate_limited', extra: { scope: 'test', used: 2 } })
  world.nowMs = MINUTE_END
  t.equal(codeOf(send(world, tenant, { test: true })), 'accepted')
  t.match(send(world, tenant, { test: true }), { code: 'cap_reached', extra: { scope: 'test', used: 3 } })
  t.equal(codeOf(send(world, tenant)), 'accepted', 'live mail is not held up by it')
})

t.test('accept: the answer contains the rest of the minute’s limit', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'server', tenant.live.serverId, { perMinuteLimit: 10, monthlyCap: 99 })
  const reply = send(world, tenant, { messages: [makeItem(), makeItem()] })
  t.same(reply.kind === 'accepted' && reply.rate, [
    { scope: 'account', limit: 300, left: 298, resetsAtMs: MINUTE_END },
    { scope: 'server', limit: 10, left: 8, resetsAtMs: MINUTE_END },
  ])
})

t.test('accept: one round of reading is enough', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { idempotency: KEY })
  t.equal(world.rounds, 1)
})

function codeOf(reply: SendReply): string {
  return reply.kind === 'refused' ? reply.code : reply.kind
}
