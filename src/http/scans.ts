/**
 * scans - how much of the store the searches of one account may read
 *
 * A search that finds little reads thousands of rows. An account runs two searches at once, a few more wait, and each
 * is charged for the rows that it has read: an account without rows is refused until they are refilled. A process
 * counts for itself.
 *
 * Spec request.rate
 */

import type { FactValue } from '../../cluster/behaviour.ts'
import type { Reader } from '../views/key.ts'
import type { EdgeRequest, Handler } from './request.ts'
import { type Answer, RATE_REFUSAL } from './respond.ts'

/** Searches of an account that read at once, and that wait for these. */
export const SCANS_AT_ONCE = 2
const WAITING_MAX = 20
/** Rows of a full account, and rows a second that it is refilled with: a tenth of a processor. */
export const ROWS_MAX = 100_000
export const ROWS_PER_SECOND = 30_000
/** Maximum number of accounts in memory, only those with fewer than all of their rows. Evicting one refills it. */
const ACCOUNTS_MAX = 10_000

interface Account {
  running: number
  readonly waiting: (() => void)[]
  /** Rows that it may read; below zero it has read more. */
  rows: number
  filledAtMs: number
}

/** The searches of all accounts. */
export class Scans {
  readonly #accounts = new Map<string, Account>()
  readonly #nowMs: () => number

  /** @param nowMs monotonic clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /**
   * A handler whose requests take places among the searches of their account.
   * @param make makes the handler over a reader
   */
  limit<Request extends EdgeRequest<{ readonly accountId: string }>, Deps extends { readonly read: Reader }>(
    make: (deps: Deps) => Handler<Request>,
    deps: Deps,
  ): Handler<Request> {
    return async (request) => {
      const account = this.#accountOf(request.key.accountId)
      if (account.rows <= 0 || account.waiting.length >= WAITING_MAX) return refuseScan(account)
      if (account.running >= SCANS_AT_ONCE) await new Promise<void>((resolve) => account.waiting.push(resolve))
      else account.running += 1
      try {
        // Earlier searches may have spent the remaining rows.
        if (this.#fill(account).rows <= 0) return refuseScan(account)
        return await make({ ...deps, read: this.#counted(deps.read, account) })(request)
      } finally {
        const next = account.waiting.shift()
        if (next === undefined) account.running -= 1
        else next()
      }
    }
  }

  #accountOf(accountId: string): Account {
    const known = this.#accounts.get(accountId)
    if (known !== undefined) return this.#fill(known)
    if (this.#accounts.size >= ACCOUNTS_MAX) this.#forget()
    const account = { running: 0, waiting: [], rows: ROWS_MAX, filledAtMs: this.#nowMs() }
    this.#accounts.set(accountId, account)
    return account
  }

  #fill(account: Account): Account {
    const nowMs = this.#nowMs()
    account.rows = Math.min(ROWS_MAX, account.rows + ((nowMs - account.filledAtMs) * ROWS_PER_SECOND) / 1_000)
    account.filledAtMs = nowMs
    return account
  }

  /** Forgets the account that was first seen the longest ago. */
  #forget(): void {
    const [oldest] = this.#accounts.keys()
    if (oldest !== undefined) this.#accounts.delete(oldest)
  }

  #counted(read: Reader, account: Account): Reader {
    return (async (shard, facts) => {
      const seen = await read(shard, facts)
      account.rows -= countRows(seen as readonly FactValue[] | null)
      return seen
    }) as Reader
  }
}

/** Rows that a read has read. */
export function countRows(seen: readonly FactValue[] | null): number {
  let rows = 1
  for (const value of seen ?? [])
    if (Array.isArray(value)) rows += value.length
    else if (value instanceof Map) rows += value.size
  return rows
}

function refuseScan({ rows }: Account): Answer {
  const seconds = Math.max(1, Math.ceil(-rows / ROWS_PER_SECOND))
  return { ...RATE_REFUSAL, headers: { 'Retry-After': String(seconds) } }
}
