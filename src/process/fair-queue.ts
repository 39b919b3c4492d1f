/**
 * fair-queue - work that waits, served to the client that has cost the least in the last minute, its own in order.
 *
 * Guarantees that the queue is bounded, and that clients that flood or cause long jobs wait behind all others.
 */

const MINUTE_MS = 60_000
/** Clients whose cost is kept; beyond that all costs are reset, as every minute. */
const CLIENTS_MAX = 10_000

export class FairQueue<Item> {
  readonly #max: number
  readonly #nowMs: () => number
  /** Queued jobs by client; no list is empty. */
  readonly #waiting = new Map<string, Item[]>()
  /** Cost of each client in this minute, in milliseconds. */
  readonly #cost = new Map<string, number>()
  #minute = 0
  #size = 0

  /** Takes the maximum number of waiting items, and a monotonic clock in milliseconds. */
  constructor(max: number, nowMs: () => number) {
    this.#max = max
    this.#nowMs = nowMs
  }

  /** False: too much is waiting. */
  push(client: string, item: Item): boolean {
    if (this.#size >= this.#max) return false
    const own = this.#waiting.get(client)
    if (own === undefined) this.#waiting.set(client, [item])
    else own.push(item)
    this.#size += 1
    return true
  }

  /**
   * Makes room for an item of a client: takes back the last item of the client with the most. Null if no client has at
   * least two more than this one.
   */
  displace(client: string): Item | null {
    let most: Item[] = []
    for (const items of this.#waiting.values()) if (items.length > most.length) most = items
    if (most.length < (this.#waiting.get(client)?.length ?? 0) + 2) return null
    this.#size -= 1
    return most.pop() as Item
  }

  /**
   * The next item of a client that may be served; null for none. If two have cost the same, the one that has waited
   * longer is next.
   */
  take(mayServe: (client: string) => boolean = () => true): { readonly client: string; readonly item: Item } | null {
    this.#forget()
    let least: string | null = null
    for (const client of this.#waiting.keys())
      if (mayServe(client) && (least === null || this.#costOf(client) < this.#costOf(least))) least = client
    if (least === null) return null
    const own = this.#waiting.get(least) as Item[]
    const item = own.shift() as Item
    // To the end of the line, behind all that cost the same.
    this.#waiting.delete(least)
    if (own.length > 0) this.#waiting.set(least, own)
    this.#size -= 1
    return { client: least, item }
  }

  /** Takes all that waits. */
  drain(): Item[] {
    const all = [...this.#waiting.values()].flat()
    this.#waiting.clear()
    this.#size = 0
    return all
  }

  /** Adds the duration of an item to the cost of its client. */
  charge(client: string, ms: number): void {
    this.#forget()
    this.#cost.set(client, this.#costOf(client) + ms)
  }

  #costOf(client: string): number {
    return this.#cost.get(client) ?? 0
  }

  #forget(): void {
    const minute = Math.floor(this.#nowMs() / MINUTE_MS)
    if (minute !== this.#minute || this.#cost.size > CLIENTS_MAX) this.#cost.clear()
    this.#minute = minute
  }
}
