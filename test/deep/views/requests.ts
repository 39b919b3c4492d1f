/** requests - pages of a log whose entries overlap, of two kinds and several processes. */
import { deflateRawSync } from 'node:zlib'
import t from 'tap'
import { makeIds, shortId } from '../../../cluster/id.ts'
import type { RequestSearch } from '../../../schemas/request-log.ts'
import {
  newRequestsKey,
  packRequests,
  type RequestRow,
  RequestRows,
  requestsKey,
  unpackRequests,
} from '../../../src/state/request-row.ts'
import type { AccountKey, ServerKey } from '../../../src/views/key.ts'
import { readRequest, searchRequests } from '../../../src/views/requests.ts'
import { ACCOUNT_KEY, LIVE_KEY, makeTenant, TEST_KEY, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const SECOND_MS = 1_000

function idOf(ms: number, n: number): string {
  const digits = ms.toString(16).padStart(12, '0')
  const count = n.toString(16).padStart(3, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7${count}-a000-0123456789ab`
}

/** A quarter of an hour. Some requests take minutes, and are in a later entry than others that came after them. */
function fill(world: World, { accountId, live, test }: Tenant): RequestRow[] {
  const rows: RequestRow[] = []
  const entries = { answered: new Map<number, RequestRow[]>(), refused: new Map<number, RequestRow[]>() }
  for (let n = 0; n < 900; n += 1) {
    const ms = NOW_MS - 900 * SECOND_MS + n * SECOND_MS
    const status = n % 3 === 0 ? 400 : 200
    const tookMs = n % 50 === 0 ? 100_000 : n % 7
    const row: RequestRow = {
      requestId: idOf(ms, n % 5),
      serverId: n % 4 === 0 ? test.serverId : live.serverId,
      method: 'POST',
      path: '/v1/email',
      status,
      error: status === 400 ? 'invalid_request' : null,
      issue: status === 400 ? 'to' : null,
      prefix: 'sk_00000000',
      ms: tookMs,
      client: null,
      userAgent: null,
      messageIds: [],
    }
    rows.push(row)
    const second = Math.ceil((ms + tookMs) / SECOND_MS) + 1
    const own = entries[status === 400 ? 'refused' : 'answered']
    own.set(second, [...(own.get(second) ?? []), row])
  }
  for (const result of ['answered', 'refused'] as const) {
    let count = 0
    for (const [second, own] of [...entries[result]].sort(([one], [other]) => one - other)) {
      count += own.length
      const args = [`${second * SECOND_MS}-0`, 'c', String(count), ...textOf(own, second)]
      world.apply({ key: requestsKey(world.shard, accountId, result), write: 'XADD', args })
    }
  }
  shareLast(world, accountId, rows)
  return rows.reverse()
}

/**
 * The stream of the shard: the last answered rows, of which the account's stream has the earlier half as well, among
 * those of another account.
 */
function shareLast(world: World, accountId: string, rows: RequestRow[]): void {
  const last = Array.from({ length: 60 }, (_, n): RequestRow => {
    const like = rows.find(({ status }) => status === 200) as RequestRow
    return { ...like, requestId: idOf(NOW_MS + n * 100, 6), ms: 5 }
  })
  const own = new RequestRows()
  const other = new RequestRows()
  for (const [n, row] of last.entries()) {
    own.add(row)
    other.add({ ...row, requestId: idOf(NOW_MS + n * 100, 7) })
    if (n % 2 === 0) continue
    const args = [`${NOW_MS + n * 100 + 50}-0`, shortId(last[0]?.serverId ?? ''), other.takeNew()]
    world.apply({ key: newRequestsKey(world.shard), write: 'XADD', args: [...args, shortId(accountId), own.takeNew()] })
  }
  const args = [`${NOW_MS + 10 * SECOND_MS}-0`, 'c', '9999', 'p', packRequests(last.slice(0, 30))]
  world.apply({ key: requestsKey(world.shard, accountId, 'answered'), write: 'XADD', args })
  rows.push(...last)
}

/** Rows of a second in one of their three stored forms: plain, deflated, and the earlier one. */
function textOf(rows: readonly RequestRow[], second: number): [name: string, text: string] {
  const text = packRequests(rows)
  if (second % 3 === 0) return ['p', text]
  return ['z', deflateRawSync(second % 3 === 1 ? text : textOfBefore(rows)).toString('base64')]
}

function textOfBefore(rows: readonly RequestRow[]): string {
  const packed = rows.map(({ requestId, serverId, method, path, status, error, issue, prefix, ms }) => {
    return [requestId, shortId(serverId ?? ''), method, path, status, error ?? 0, issue ?? 0, prefix, ms]
  })
  return JSON.stringify(packed)
}

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const rows = fill(world, tenant)
  const { accountId, live } = tenant
  const key = { tokenId: accountId, accountId }
  const account: AccountKey = { kind: 'account', ...key, hash: ACCOUNT_KEY }
  const place = { serverId: live.serverId, mode: 'live', defaultStreamId: live.streamId } as const
  const server: ServerKey = { kind: 'server', ...key, ...place, hash: LIVE_KEY }
  const seen = readerOf(world)
  const pagesOf = async (
    owner: AccountKey | ServerKey,
    filter: Omit<RequestSearch, 'limit' | 'after'>,
    limit: number,
  ) => {
    const ids: string[] = []
    for (let after: string | null = null; ; ) {
      const page = await searchRequests(seen.read, owner, { filter, page: { limit, after }, nowMs: NOW_MS })
      if (typeof page === 'string') throw new Error(page)
      ids.push(...page.requests.map(({ requestId }) => requestId))
      after = page.next
      if (after === null) return ids
    }
  }
  return { rows, account, server, seen, pagesOf, tenant }
}

t.test('requests: a row is read as it was written, among others of its entry', async (t) => {
  const next = makeIds({ shard: 3, last: '', random: Math.random })
  const plain = { method: 'GET', path: null, status: 404, error: null, issue: null, prefix: 'ak_00000000', ms: 0 }
  const bare: RequestRow = {
    ...plain,
    requestId: idOf(NOW_MS, 1),
    serverId: null,
    client: null,
    userAgent: null,
    messageIds: [],
  }
  const [serverId, one, other] = [next.next(NOW_MS), next.next(NOW_MS), next.next(NOW_MS)]
  const full: RequestRow = {
    ...bare,
    serverId,
    error: 'invalid_request',
    issue: 'to[0]."x"',
    client: '192.0.2.0/24',
    userAgent: 'a "client" \u00fc',
    messageIds: [one, other],
  }
  const rows = [
    bare,
    { ...bare, requestId: idOf(NOW_MS, 4095), ms: 350_000 },
    { ...full, requestId: idOf(NOW_MS + 20, 2) },
    { ...bare, requestId: idOf(NOW_MS + 100_000, 3), messageIds: [one] },
    { ...full, requestId: idOf(NOW_MS, 4).replace('0123', '4567'), messageIds: [] },
    { ...full, requestId: idOf(NOW_MS - 100_000, 5), issue: null },
  ]
  t.same(unpackRequests(packRequests(rows)), rows)
  t.same(unpackRequests(packRequests(rows.slice(2))), rows.slice(2))
})

const idsOf = (rows: readonly RequestRow[]) => rows.map(({ requestId }) => requestId)

t.test('requests: newest first whatever the size of a page, each once [list.page]', async (t) => {
  const { rows, account, server, pagesOf, tenant } = begin()
  const own = rows.filter(({ serverId }) => serverId === tenant.live.serverId)
  for (const limit of [1, 7, 100]) {
    t.same(await pagesOf(account, {}, limit), idsOf(rows))
    t.same(await pagesOf(server, {}, limit), idsOf(own))
    const refused = own.filter(({ status }) => status === 400)
    t.same(await pagesOf(server, { result: 'refused' }, limit), idsOf(refused))
    t.same(await pagesOf(server, { error: 'invalid_request' }, limit), idsOf(refused))
  }
  const fromMs = NOW_MS - 500 * SECOND_MS
  const toMs = NOW_MS - 400 * SECOND_MS
  const stretch = { receivedFrom: new Date(fromMs).toISOString(), receivedTo: new Date(toMs).toISOString() }
  t.equal((await pagesOf(account, stretch, 30)).length, 100)
})

t.test('requests: a first page and one request are found with few reads', async (t) => {
  const { rows, account, server, seen } = begin()
  await searchRequests(seen.read, account, { filter: {}, page: { limit: 10, after: null }, nowMs: NOW_MS })
  t.ok(seen.reads <= 4, `${seen.reads}`)
  for (const row of [rows[0], rows[45], rows[450], rows[959]]) {
    const requestId = row?.requestId.toUpperCase() ?? ''
    t.match(await readRequest(seen.read, account, { requestId, nowMs: NOW_MS }), { requestId: row?.requestId })
  }
  const other = rows.find(({ serverId }) => serverId !== server.serverId)?.requestId ?? ''
  t.equal(await readRequest(seen.read, server, { requestId: other, nowMs: NOW_MS }), 'not_found')
  t.equal(await readRequest(seen.read, server, { requestId: idOf(NOW_MS, 9), nowMs: NOW_MS }), 'not_found')
  t.equal(
    await readRequest(seen.read, { ...server, hash: TEST_KEY.replace(/./g, '0') }, { requestId: other, nowMs: NOW_MS }),
    'unauthorized',
  )
})
