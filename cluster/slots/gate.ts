/**
 * gate - no commit is reported before replicas have it
 *
 * One connection to a primary, one pair of `PING` and `WAIT` under way; later callers wait for the next pair. `WAIT`
 * covers the writes of its own connection, and returns at once for a connection without writes; the `PING` before it
 * moves its position to the end of everything written so far.
 *
 * Guarantees that a pass is given once the required number of replicas have acknowledged all writes of the primary
 * before the request. A failed pass is requested again, five times in all; then the outcome of the commits is unknown.
 * So it is for every caller that waits when the connection ends: on the next one, a primary that has lost a shard and
 * gained a replica would answer for data without the commits of these callers.
 */
import type { RedisLink } from '../redis/link.ts'

/** `WAIT` returns after this time with the number of replicas that have acknowledged. */
const WAIT_MS = 1_000
/** Failed passes for one request: five seconds, more than any caller waits. */
const SHORT_MAX = 5

interface Waiting {
  readonly resolve: (isThrough: boolean) => void
  readonly shorts: number
}

export class ReplicaGate {
  private readonly link: Pick<RedisLink, 'call'>
  private readonly replicas: number
  private waiting: Waiting[] = []
  private isAsking = false

  /** `replicas` is the number of replicas that must acknowledge. */
  constructor(link: Pick<RedisLink, 'call'>, replicas: number) {
    this.link = link
    this.replicas = replicas
  }

  /**
   * Resolves with true when replicas have the current data of the primary; false if unknown, because the connection
   * ended or they lag.
   */
  pass(): Promise<boolean> {
    return new Promise((resolve) => {
      this.waiting.push({ resolve, shorts: 0 })
      if (!this.isAsking) void this.ask()
    })
  }

  private async ask(): Promise<void> {
    this.isAsking = true
    while (this.waiting.length > 0) {
      const asked = this.waiting
      this.waiting = []
      const [, answer] = await Promise.all([
        this.link.call('PING'),
        this.link.call('WAIT', String(this.replicas), String(WAIT_MS)),
      ])
      if (answer.kind !== 'reply') this.fail(asked)
      else if (Number(answer.value) < this.replicas) this.askAgain(asked)
      else for (const { resolve } of asked) resolve(true)
    }
    this.isAsking = false
  }

  /** The connection has ended, or the node is no primary: no caller of this connection is asked for on the next one. */
  private fail(asked: readonly Waiting[]): void {
    const all = [...asked, ...this.waiting]
    this.waiting = []
    for (const { resolve } of all) resolve(false)
  }

  private askAgain(asked: readonly Waiting[]): void {
    const again = asked.map(({ resolve, shorts }) => ({ resolve, shorts: shorts + 1 }))
    for (const { resolve, shorts } of again) if (shorts >= SHORT_MAX) resolve(false)
    this.waiting = [...again.filter(({ shorts }) => shorts < SHORT_MAX), ...this.waiting]
  }
}
