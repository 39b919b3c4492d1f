/**
 * gate - nothing that was committed is told of before replicas have it
 *
 * One connection to a primary, one pair of `PING` and `WAIT` under way; who comes meanwhile waits for the next pair.
 * `WAIT` speaks of what its own connection has done, and one that has done nothing is answered at once, whatever the
 * replicas have: the `PING` before it moves that to the end of everything that was written so far.
 *
 * Guarantee: a pass is given when as many replicas as are wanted have acknowledged all that the primary had written
 * when it was asked for. One that falls short is asked for again, and never refused: what was committed is in doubt.
 */
import type { RedisLink } from '../redis/link.ts'

/** `WAIT` answers after this with what it has. */
const WAIT_MS = 1_000

export class ReplicaGate {
  private readonly link: Pick<RedisLink, 'call'>
  private readonly replicas: number
  private waiting: ((isThrough: boolean) => void)[] = []
  private isAsking = false

  /** `replicas`: as many must have it. */
  constructor(link: Pick<RedisLink, 'call'>, replicas: number) {
    this.link = link
    this.replicas = replicas
  }

  /** Resolves when replicas have what the primary has now; false: the connection ended, and nobody knows. */
  pass(): Promise<boolean> {
    return new Promise((resolve) => {
      this.waiting.push(resolve)
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
      const isShort = answer.kind === 'reply' && Number(answer.value) < this.replicas
      if (isShort) this.waiting = [...asked, ...this.waiting]
      else for (const resolve of asked) resolve(answer.kind === 'reply')
    }
    this.isAsking = false
  }
}
