/**
 * client - the requests of the simulated users and the answers that they received.
 *
 * Users repeat asks that got no answer or a refusal of the service, with the same idempotency key and the same body.
 * They use few keys and few accounts, so that asks collide.
 */
import { newCmdId } from '../../cluster/cmd-id.ts'
import type { AskResult } from '../../cluster/work.ts'
import type { Chance } from './prng.ts'
import { SHARDS, type SimProcess } from './process.ts'
import { type AcceptBody, SERIAL } from './toy.ts'
import { shardOfAccount } from './toy-keys.ts'

/** One ask, and how it ended; null while it is open. */
export interface Ask {
  readonly n: number
  readonly name: string
  readonly cmdId: string
  readonly body: { readonly account: string }
  readonly process: SimProcess
  /** It went through the mailbox of its shard: at once, or because its process lost the shard. */
  isRemote: boolean
  readonly askedAtMs: number
  result: AskResult | null
}

const KEYS_PER_ACCOUNT = 8
/** How often the last message with a key is asked for once more. */
const REPEAT_CHANCE = 0.35
const LANES = ['send/x', SERIAL, 'post/w', 'mail/y', 'mail/y'] as const
const ACCOUNTS_PER_SHARD = 2
const RETRIES_MAX = 60

export const LANES_USED: readonly string[] = [
  ...new Set(LANES.filter((lane) => lane !== SERIAL)),
  ...Array.from({ length: SHARDS }, (_, shard) => serialLane(shard)),
  'timers',
]

/** All accounts of the simulated installation. */
export const ACCOUNTS: readonly string[] = Array.from(
  { length: SHARDS * ACCOUNTS_PER_SHARD },
  (_, n) => `${n % SHARDS}a${Math.floor(n / SHARDS)}`,
)

export class Clients {
  readonly asks: Ask[] = []
  private readonly chance: Chance
  private readonly answered: (ask: Ask) => void
  private readonly bodies = new Map<string, AcceptBody>()
  private readonly again: Ask[] = []
  private readonly hot: string
  /** The last message whose key was used. The same key is used again soon. */
  private last: AcceptBody | null = null
  private readonly waiting = new Set<Ask>()

  constructor(chance: Chance, answered: (ask: Ask) => void) {
    this.chance = chance
    this.answered = answered
    this.hot = chance.pick(ACCOUNTS)
  }

  /** Asks without an answer whose process lives. */
  get open(): number {
    for (const ask of this.waiting) if (ask.process.state === 'dead') this.waiting.delete(ask)
    return this.waiting.size
  }

  /** Sends an ask, or the ask of `same` again, to one of `processes`; to the owner of its shard if `isLocal`. */
  ask(
    processes: readonly SimProcess[],
    { isLocal, nowMs, same }: { isLocal: boolean; nowMs: number; same: Ask | null },
  ): Ask {
    const { name, body } = same ?? this.something()
    const owner = processes.find((process) => process.shardOf(shardOfAccount(body.account)) !== undefined)
    const process = (isLocal ? owner : undefined) ?? this.chance.pick(processes)
    return this.send(process, { name, body, nowMs })
  }

  private something(): Pick<Ask, 'name' | 'body'> {
    const { chance } = this
    if (this.last !== null && chance.hit(REPEAT_CHANCE)) return { name: 'accept', body: this.last }
    const again = chance.hit(0.4) ? this.again.shift() : undefined
    if (again !== undefined) return again
    const account = chance.hit(0.5) ? this.hot : chance.pick(ACCOUNTS)
    const kind = chance.next()
    if (kind < 0.62) return { name: 'accept', body: this.acceptBody(account) }
    if (kind < 0.72) return { name: 'raise', body: bodyOf({ account, by: 1 + chance.below(3) }) }
    if (kind < 0.76)
      return {
        name: 'explode',
        body: bodyOf({ account, where: chance.pick(['entities', 'facts', 'decide', 'missing', 'store']) }),
      }
    return { name: 'cancel', body: bodyOf({ account, id: this.someId(account) }) }
  }

  private acceptBody(account: string): AcceptBody {
    const { chance } = this
    const key = chance.hit(0.6) ? `k${chance.below(KEYS_PER_ACCOUNT)}` : ''
    const before = this.bodies.get(`${account} ${key}`)
    if (key !== '') this.last = before ?? null
    if (key !== '' && before !== undefined) return before
    const person = chance.below(5)
    const body: AcceptBody = {
      account,
      key,
      hmac: `h${person}`,
      address: `person${person}@example.com`,
      lane: this.someLane(account),
      delayMs: chance.hit(0.35) ? 0 : chance.below(1_200),
      times: chance.hit(0.7) ? 1 : 2,
    }
    if (key !== '') {
      this.bodies.set(`${account} ${key}`, body)
      this.last = body
    }
    return body
  }

  private someLane(account: string): string {
    const lane = this.chance.pick(LANES)
    return lane === SERIAL ? serialLane(shardOfAccount(account)) : lane
  }

  /** The id of an accepted message, or an invented id if there is none. */
  private someId(account: string): string {
    const ids = this.asks.flatMap(({ body, result }) => {
      if (body.account !== account || result?.kind !== 'answer') return []
      return (result.reply as { ids?: readonly string[] } | null)?.ids ?? []
    })
    return ids.length === 0 ? 'none' : this.chance.pick(ids.slice(-4))
  }

  private send(process: SimProcess, { name, body, nowMs }: { name: string; body: Ask['body']; nowMs: number }): Ask {
    const shard = shardOfAccount(body.account)
    const cmdId = newCmdId(process.worker.nowMs(), () => this.chance.next())
    const mine = process.shardOf(shard)
    const isRemote = mine?.accepts !== true
    const ask: Ask = { n: this.asks.length, name, cmdId, body, process, isRemote, askedAtMs: nowMs, result: null }
    this.asks.push(ask)
    this.waiting.add(ask)
    void process.worker.ask(shard, { name, cmdId, body }).then((result) => {
      if (process.state === 'dead') return
      ask.result = result
      ask.isRemote ||= process.shardOf(shard) !== mine
      this.waiting.delete(ask)
      const isOpen = result.kind === 'unavailable' || result.kind === 'silent'
      if (isOpen && this.again.length < RETRIES_MAX) this.again.push(ask)
      this.answered(ask)
    })
    return ask
  }
}

function serialLane(shard: number): string {
  return `${SERIAL}/${shard}`
}

function bodyOf(body: { readonly account: string; readonly [field: string]: string | number }): Ask['body'] {
  return body
}
