/**
 * account-counts - delivery attempts of the last hour by account: the 20 accounts with the most have a label of their
 * own, all others share one
 *
 * A gauge, because an account that leaves the 20 would let a counter fall. Memory is bounded: twelve parts of five
 * minutes, with at most 2,000 accounts each.
 */

const PART_MS = 300_000
const PARTS = 12
export const NAMED_MAX = 20
const ACCOUNTS_MAX = 2_000
/** All accounts without a label of their own. */
const REST = 'rest'

/** Attempts of one account, by result. */
type Results = Map<string, number>

export class AccountCounts {
  readonly #nowMs: () => number
  /** The newest last. */
  #parts: { readonly startedAtMs: number; readonly accounts: Map<string, Results> }[] = []

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  count(accountId: string, result: string): void {
    const { accounts } = this.#current()
    const key = accounts.has(accountId) || accounts.size < ACCOUNTS_MAX ? accountId : REST
    const results: Results = accounts.get(key) ?? new Map()
    results.set(result, (results.get(result) ?? 0) + 1)
    accounts.set(key, results)
  }

  /** Of the page. */
  figure() {
    return {
      each: 'account_attempts',
      help: 'Delivery attempts of the last hour, by account and result; the account is rest after the first 20.',
      labels: ['account', 'result'],
      rows: () => this.rows(),
    }
  }

  /** Account, result and number; `rest` for the accounts after the first 20. */
  *rows(): Generator<readonly [labels: readonly [account: string, result: string], value: number]> {
    this.#current()
    const sums = new Map<string, Results>()
    for (const { accounts } of this.#parts)
      for (const [accountId, results] of accounts) addAll(sums, accountId, results)
    const most = [...sums.keys()]
      .filter((accountId) => accountId !== REST)
      .map((accountId) => ({ accountId, sum: sumOf(sums.get(accountId)) }))
      .sort((a, b) => b.sum - a.sum)
    const named = new Set(most.slice(0, NAMED_MAX).map(({ accountId }) => accountId))
    const shown = new Map<string, Results>()
    for (const [accountId, results] of sums) addAll(shown, named.has(accountId) ? accountId : REST, results)
    for (const [account, results] of shown) for (const [result, value] of results) yield [[account, result], value]
  }

  #current() {
    const nowMs = this.#nowMs()
    this.#parts = this.#parts.filter(({ startedAtMs }) => startedAtMs > nowMs - PARTS * PART_MS)
    const last = this.#parts.at(-1)
    if (last !== undefined && last.startedAtMs > nowMs - PART_MS) return last
    const part = { startedAtMs: nowMs, accounts: new Map<string, Results>() }
    this.#parts.push(part)
    return part
  }
}

function addAll(sums: Map<string, Results>, accountId: string, more: Results): void {
  const results: Results = sums.get(accountId) ?? new Map()
  for (const [result, value] of more) results.set(result, (results.get(result) ?? 0) + value)
  sums.set(accountId, results)
}

function sumOf(results: Results | undefined): number {
  return [...(results?.values() ?? [])].reduce((total, value) => total + value, 0)
}
