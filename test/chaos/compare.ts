/**
 * compare - the ledger of the clients against the store and against the API, when everything is calm.
 *
 * Lost: answered and not stored. Doubled: one key with two messages, or a message that no answer named. Counts: `used`
 * of each server and the account's counter must equal the ledger exactly.
 */
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { withoutSum } from '../../cluster/sum.ts'
import type { Accepted } from '../support/clients/ledger.ts'
import { messagesLogged, tornShards, uncertainRecipients } from '../support/clients/settle.ts'
import { until } from '../support/machine/until.ts'

const SETTLE_MS_MAX = 240_000
/** Messages that are read through the API; all that the ledger knows, up to this. */
const READ_MAX = 2_000
const READS_AT_ONCE = 16
const SHARDS = 256

export interface Compared {
  readonly messages: number
  readonly lost: number
  readonly doubled: number
  /** Servers whose figures are not those of the ledger. */
  readonly miscounted: readonly string[]
  /** Recipients without exactly one outcome. */
  readonly unclear: number
  /** Recipients abandoned after five deaths of the process that attempted them. */
  readonly abandoned: number
  readonly torn: number
  /** Messages that the API does not show as they must be. */
  readonly unshown: readonly string[]
  /** Journals in which an owner wrote after its successor. */
  readonly fencedWrites: number
}

/** Waits until nothing is under way, then compares. `port` is one that answers the API. */
export async function compare(
  socketPath: string,
  { ledger, port }: { ledger: readonly Accepted[]; port: number },
): Promise<Compared> {
  const redis = new Redis({ path: socketPath })
  try {
    await until(async () => (await underWay(redis)) === 0, SETTLE_MS_MAX)
    const logged = await messagesLogged(redis)
    const told = new Map<string, string>()
    let twice = 0
    for (const { key, messageId } of ledger) {
      if ((told.get(key) ?? messageId) !== messageId) twice += 1
      told.set(key, messageId)
    }
    const ids = new Set(told.values())
    const { unclear, abandoned } = await uncertainRecipients(redis)
    return {
      messages: told.size,
      lost: [...ids].filter((id) => !logged.has(id)).length,
      doubled: twice + (told.size - ids.size) + [...logged].filter((id) => !ids.has(id)).length,
      miscounted: await miscounted(redis, ledger, port),
      unclear: unclear.length,
      abandoned: abandoned.length,
      torn: await tornShards(redis),
      unshown: await unshown(ledger, port, abandoned.length),
      fencedWrites: await fencedWrites(redis),
    }
  } finally {
    redis.disconnect()
  }
}

/** Items, claims, and the entries in mailboxes and outcomes. */
async function underWay(redis: Redis): Promise<number> {
  const pipeline = redis.pipeline()
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const tag = `{s${String(shard).padStart(3, '0')}}`
    pipeline.hlen(`${tag}:claims`).xlen(`${tag}:mailbox`).xlen(`${tag}:outcomes`)
    for (const lane of ['simulate', 'relay']) pipeline.zcard(`${tag}:due:${lane}`)
  }
  const answers = (await pipeline.exec()) ?? []
  return answers.reduce((sum, [, count]) => sum + Number(count), 0)
}

async function miscounted(redis: Redis, ledger: readonly Accepted[], port: number): Promise<string[]> {
  const expected = new Map<string, Set<string>>()
  for (const { token, messageId } of ledger) expected.set(token, (expected.get(token) ?? new Set()).add(messageId))
  const wrong: string[] = []
  for (const [token, { size }] of expected) {
    const hash = createHash('sha256').update(token).digest('hex')
    const [key = ''] = await redis.keys(`*:key:${hash}`)
    const accountId = await redis.hget(key, 'accountId')
    const packed = (await redis.hget(`${key.slice(0, 6)}:counters`, `account:${accountId}`)) ?? '{}'
    const counters = JSON.parse(withoutSum(packed, 'counters'))
    const [, month = 0, before = 0] = (counters.testMonth ?? []) as number[]
    const { limits } = await read(port, token, '/v1/server')
    const used = limits?.find(({ period }: { period: string }) => period === 'month')?.used
    if (month + before !== size || used !== month)
      wrong.push(`told ${size}, counted ${month + before}, the API says ${used}`)
  }
  return wrong
}

async function unshown(ledger: readonly Accepted[], port: number, abandoned: number): Promise<string[]> {
  const step = Math.max(1, Math.floor(ledger.length / READ_MAX))
  const chosen = ledger.filter((_, place) => place % step === 0)
  const wrong: string[] = []
  const next = chosen[Symbol.iterator]()
  const reader = async (): Promise<void> => {
    for (const { token, messageId } of { [Symbol.iterator]: () => next }) {
      const message = await read(port, token, `/v1/messages/${messageId}`)
      const isEnded = message.status === 'delivered' || (abandoned > 0 && message.status === 'failed')
      if (message.messageId !== messageId || !isEnded) wrong.push(`${messageId} ${message.status ?? message.error}`)
    }
  }
  await Promise.all(Array.from({ length: READS_AT_ONCE }, reader))
  return wrong
}

/** Asks again after a 503, as its header says. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
function read(port: number, token: string, path: string): Promise<any> {
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  return until(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
    const json = await answer.json()
    return answer.status === 503 ? null : json
  }, SETTLE_MS_MAX)
}

/** Each journal's commits name the token of their owner: its epoch never falls, and no number is missing. */
async function fencedWrites(redis: Redis): Promise<number> {
  let wrong = 0
  for (const key of await redis.keys('*:journal')) {
    let epoch = 0
    let seq = 0
    for (const [id, fields] of await redis.xrange(key, '-', '+')) {
      const mine = Number(String(fields[1]).split(':')[0])
      const number = Number(id.split('-')[0])
      if (mine < epoch || (seq !== 0 && number !== seq + 1)) wrong += 1
      epoch = mine
      seq = number
    }
  }
  return wrong
}
