/**
 * pace - starts new connections a few at a time, because a thousand handshakes at once would block this thread for
 * seconds.
 *
 * Two classes. Those for receivers that have answered go first; the others get at least a share of each step, so that
 * no connection waits for ever. Within a class hosts take turns, so a host with a thousand URLs delays no other.
 *
 * Spec webhook.fair
 */

/** Connections that begin in one step: 500 a second. */
const BEGUN_MAX = 10
const STEP_MS = 20
/** The share for receivers that have not answered yet, while any is waiting. */
const UNPROVEN_SHARE = 3
/**
 * The maximum of that share: a handshake costs two milliseconds of this thread, so a crowd takes half of it. All
 * attempts that may be in flight have begun within eight seconds, so each has time to be answered.
 */
const UNPROVEN_MAX = 5

export interface Begin {
  readonly host: string
  /** Whether it is for a receiver that answered when it was asked last. */
  readonly isProven: boolean
}

/** Resolves when the connection may begin. */
export type Pace = (begin: Begin) => Promise<void>

/** Makes the pace of a process. `later` calls back after some ms. */
export function makePace(later: (call: () => void, ms: number) => void = setTimeout): Pace {
  const proven = new Turns()
  const unproven = new Turns()
  let begun = 0
  let unprovenBegun = 0
  let isStepping = false
  const count = (isProven: boolean): void => {
    begun += 1
    if (!isProven) unprovenBegun += 1
  }
  const step = (): void => {
    begun = 0
    unprovenBegun = 0
    while (unprovenBegun < UNPROVEN_SHARE && unproven.next()) count(false)
    while (begun < BEGUN_MAX && proven.next()) count(true)
    while (begun < BEGUN_MAX && unprovenBegun < UNPROVEN_MAX && unproven.next()) count(false)
    isStepping = begun > 0
    if (isStepping) later(step, STEP_MS)
  }
  return ({ host, isProven }) =>
    new Promise((resolve) => {
      if (!isStepping) {
        isStepping = true
        later(step, STEP_MS)
      }
      const isFree = proven.isEmpty && (isProven || (unproven.isEmpty && unprovenBegun < UNPROVEN_MAX))
      if (begun < BEGUN_MAX && isFree) {
        count(isProven)
        resolve()
      } else (isProven ? proven : unproven).add(host, resolve)
    })
}

/** Waiting connections, host by host in turn. */
class Turns {
  private readonly hosts = new Map<string, (() => void)[]>()

  get isEmpty(): boolean {
    return this.hosts.size === 0
  }

  add(host: string, begin: () => void): void {
    const waiting = this.hosts.get(host)
    if (waiting === undefined) this.hosts.set(host, [begin])
    else waiting.push(begin)
  }

  /** Starts the next one; false if none is waiting. */
  next(): boolean {
    for (const [host, waiting] of this.hosts) {
      const [begin] = waiting.splice(0, 1)
      this.hosts.delete(host)
      // A Map is in order of insertion: this host is the last now.
      if (waiting.length > 0) this.hosts.set(host, waiting)
      begin?.()
      return true
    }
    return false
  }
}
