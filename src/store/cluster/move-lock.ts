/**
 * move-lock - one order at a time moves shards of a cluster
 *
 * States: held (renewed every two seconds), ended, or left behind by an order that died. Then it expires ten seconds
 * later, and a new order waits for that. An order that waits and sees a renewal is refused.
 *
 * Guarantee: an order that could not renew it for some seconds makes no further change. If a failover has lost it and
 * two orders have it, the later one ends the connections of the other and takes its fence (`move-fence.ts`).
 *
 * Key: `{cl}:move`, the order's nonce, its machine and its process
 */
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { MOVE_KEY } from '../../../cluster/keyspace.ts'

const LIFE_MS = 10_000
const AGAIN_MS = 2_000
/** After this time without an answer, another order may soon get the lock. */
const HELD_MS_MAX = 6_000
const LOOK_MS = 500

/** Takes it if it is free, or renews it for the same holder. Answers the holder and the remaining time. */
const TAKE = `#!lua flags=allow-oom
local other = redis.call('GET', KEYS[1])
if other and other ~= ARGV[1] then return { other, redis.call('PTTL', KEYS[1]) } end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return { ARGV[1], 0 }
`

const END = `#!lua
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('UNLINK', KEYS[1]) end
return 1
`

/** Another order is running: waiting would not help. */
export class OtherOrder extends Error {}

export class MoveLock {
  private readonly value: string
  private readonly clientAt: (name: string) => Redis
  private at: { readonly name: string; readonly client: Redis } | null = null
  private isTaken = false
  private saidAtMs = Number.NEGATIVE_INFINITY
  private other: string | null = null
  private readonly timer: NodeJS.Timeout

  /** `clientAt` makes a client of the node at `host:port`, which connects on request. */
  constructor(nonce: string, clientAt: (name: string) => Redis) {
    this.value = `${nonce} ${hostname()} ${process.pid}`
    this.clientAt = clientAt
    this.timer = setInterval(() => void this.again(), AGAIN_MS)
  }

  /**
   * Takes it at the primary of keys outside any shard, or renews it there. Waits for the expiry of an abandoned one.
   * @throws OtherOrder
   */
  async take(name: string): Promise<void> {
    const client = await this.reach(name)
    let leastMs = Number.POSITIVE_INFINITY
    for (;;) {
      const [holder, leftMs] = await this.say(client)
      if (holder === this.value) break
      if (this.isTaken || leftMs > leastMs) throw otherOrder(holder)
      leastMs = leftMs
      await pause(LOOK_MS)
    }
    this.isTaken = true
  }

  /** @throws OtherOrder if another order has it, Error if it could not be renewed for a while */
  mustHold(): void {
    if (this.other !== null) throw otherOrder(this.other)
    if (performance.now() - this.saidAtMs > HELD_MS_MAX)
      throw new Error('The primary of {cl} does not answer: run the command again')
  }

  /** Gives it up. */
  async end(): Promise<void> {
    clearInterval(this.timer)
    if (this.isTaken) await this.at?.client.eval(END, 1, MOVE_KEY, this.value).catch(() => undefined)
    this.at?.client.disconnect()
  }

  /** The node may be another one than before, or have been away. */
  private async reach(name: string): Promise<Redis> {
    if (this.at?.name === name && this.at.client.status === 'ready') return this.at.client
    this.at?.client.disconnect()
    const client = this.clientAt(name)
    this.at = { name, client }
    await client.connect()
    return client
  }

  private async again(): Promise<void> {
    if (this.at === null || !this.isTaken) return
    const [holder] = await this.say(this.at.client).catch(() => [this.value])
    if (holder !== this.value) this.other = holder
  }

  private async say(client: Redis): Promise<readonly [string, number]> {
    const sentAtMs = performance.now()
    const answer = (await client.eval(TAKE, 1, MOVE_KEY, this.value, LIFE_MS)) as [string, number]
    if (answer[0] === this.value) this.saidAtMs = sentAtMs
    return answer
  }
}

function otherOrder(holder: string): OtherOrder {
  const [, host, pid] = holder.split(' ')
  return new OtherOrder(`Another move is running, by process ${pid} on ${host}: only one can run at a time`)
}
