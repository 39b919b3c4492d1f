/**
 * failed-logins - counts recent failed logins of each client
 *
 * A client is an IPv4 address or the /64 network of an IPv6 one. Counted in each process, so that a guess costs the
 * store nothing once the client has used up its tries. When there are too many clients, the oldest is evicted, which
 * errs in its favour.
 *
 * Spec submission.login
 */

import { SUBMISSION_LOGIN_MINUTES, SUBMISSION_LOGINS_FAILED_MAX } from '../../../schemas/limits.ts'
import { clientNetwork } from '../../mail/ip-address.ts'

/** Some 10 MB. */
const CLIENTS_MAX = 50_000
const WINDOW_MS = SUBMISSION_LOGIN_MINUTES * 60_000

export class FailedLogins {
  /** The times of each client's failed tries, the oldest first; the client that failed last is last. */
  readonly #failures = new Map<string, number[]>()
  readonly #nowMs: () => number
  readonly #clientsMax: number

  /** `nowMs` is a monotonic clock in milliseconds. */
  constructor(nowMs: () => number, clientsMax: number = CLIENTS_MAX) {
    this.#nowMs = nowMs
    this.#clientsMax = clientsMax
  }

  /** Whether a client at the address may not try now. */
  isBlocked(address: string): boolean {
    return this.#recent(clientNetwork(address)).length >= SUBMISSION_LOGINS_FAILED_MAX
  }

  /** A try failed. */
  add(address: string): void {
    const client = clientNetwork(address)
    const recent = this.#recent(client)
    this.#failures.delete(client)
    if (this.#failures.size >= this.#clientsMax) this.#failures.delete(this.#failures.keys().next().value as string)
    this.#failures.set(client, [...recent, this.#nowMs()].slice(-SUBMISSION_LOGINS_FAILED_MAX))
  }

  #recent(client: string): readonly number[] {
    const sinceMs = this.#nowMs() - WINDOW_MS
    return (this.#failures.get(client) ?? []).filter((atMs) => atMs > sinceMs)
  }
}
