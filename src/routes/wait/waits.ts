/**
 * waits - searches that wait until something matches, and the places that they take
 *
 * A wait searches at once. If nothing matches, it searches again on each signal of an accepted message or an event,
 * and once more at its end, so a lost signal only delays the answer. Between signals it costs nothing but its place.
 *
 * Guarantees: at most so many places of a server and of a process; a place is released when the client is gone, when
 * its key is revoked (401) and when the process stops (with an empty result).
 *
 * Spec search.wait
 */

import { homeShard } from '../../../cluster/id.ts'
import type { Ask } from '../../../cluster/work.ts'
import { SERVER_WAITS_MAX, WAITS_MAX } from '../../../schemas/limits.ts'
import { accountTopic, keysTopic, serverTopic } from '../../actors/webhook/announce.ts'
import type { ListenReply } from '../../actors/webhook/listen.ts'
import type { EdgeRequest, Handler } from '../../http/request.ts'
import { type Answer, RATE_REFUSAL, refusalReply } from '../../http/respond.ts'
import type { ServerKey } from '../../views/key.ts'
import { giveOrder } from '../answer.ts'

/** Minimum time between two searches of a wait. */
const REST_MS = 250
/** The same after a search that its account had no rows for. */
const REFUSED_REST_MS = 1_000

/** Dependencies of waits. */
export interface WaitDeps {
  readonly ask: Ask
  readonly newCmdId: () => string
  readonly nowMs: () => number
  /** Subscribes to a topic; resolves with a function that ends the subscription. */
  readonly hear: (topic: string, heard: (text: string) => void) => Promise<() => void>
  readonly waits: SearchWaits
}

/** The places of a process. */
export class SearchWaits {
  readonly #servers = new Map<string, number>()
  #all = 0

  /** SearchWaits that are open. */
  get open(): number {
    return this.#all
  }

  /** Takes a place. Returns a function that releases it; null if all are taken. */
  enter(serverId: string): (() => void) | null {
    const mine = this.#servers.get(serverId) ?? 0
    if (mine >= SERVER_WAITS_MAX || this.#all >= WAITS_MAX) return null
    this.#servers.set(serverId, mine + 1)
    this.#all += 1
    return () => {
      this.#all -= 1
      const left = (this.#servers.get(serverId) ?? 1) - 1
      if (left > 0) this.#servers.set(serverId, left)
      else this.#servers.delete(serverId)
    }
  }
}

/** Fields of a search that can wait. */
interface WaitBody {
  readonly waitSeconds?: number
  readonly after?: string
}

interface Waited<Request> {
  readonly search: Handler<Request>
  /** The name of the list in its answer. */
  readonly list: string
  /** Topics of a server in addition to that of its events. */
  readonly topics?: (serverId: string) => readonly string[]
}

/** The handler of a search that waits if its body requires it. */
export function makeWaiting<Request extends EdgeRequest<ServerKey, WaitBody>>(
  deps: WaitDeps,
  { search, list, topics = () => [] }: Waited<Request>,
): Handler<Request> {
  return async (request) => {
    const { waitSeconds = 0, after } = request.body
    if (waitSeconds === 0) return search(request)
    if (after !== undefined)
      return refusalReply('invalid_request', {
        issues: [{ path: 'waitSeconds', message: 'Cannot be given with after' }],
      })
    const leave = deps.waits.enter(request.key.serverId)
    if (leave === null) return RATE_REFUSAL
    const { serverId, accountId, mode } = request.key
    const heard = [serverTopic(serverId), accountTopic(accountId, mode), ...topics(serverId)]
    try {
      return await new Wait(deps, request.key, heard).until(request, {
        endAtMs: performance.now() + waitSeconds * 1000,
        look: async () => search(request),
        isEmpty: (answer) => isEmpty(answer, list),
      })
    } finally {
      leave()
    }
  }
}

/** Whether the account has to rest before it searches again. */
function isRefused(answer: Answer): boolean {
  return 'status' in answer && answer.status === 429
}

function isEmpty(answer: Answer, list: string): boolean {
  const { [list]: found } = ('json' in answer ? answer.json : {}) as Record<string, readonly unknown[] | undefined>
  return found?.length === 0
}

interface Looking {
  /** Monotonic ms. */
  readonly endAtMs: number
  readonly look: () => Promise<Answer>
  readonly isEmpty: (answer: Answer) => boolean
}

/** One wait. */
class Wait {
  readonly #deps: WaitDeps
  readonly #key: ServerKey
  readonly #topics: readonly string[]
  #isOver = false
  #isNews = false
  #refused: Answer | null = null
  #wake: () => void = () => undefined

  constructor(deps: WaitDeps, key: ServerKey, topics: readonly string[]) {
    this.#deps = deps
    this.#key = key
    this.#topics = topics
  }

  async until(request: EdgeRequest, looking: Looking): Promise<Answer> {
    const news = () => this.#stir(() => (this.#isNews = true))
    const { hear } = this.#deps
    const opening = [
      ...this.#topics.map((topic) => hear(topic, news)),
      hear(keysTopic(this.#key.serverId), () => void this.#listen()),
    ]
    request.connection?.onEnd(() => this.#stir(() => (this.#isOver = true)))
    try {
      await this.#opened(opening, looking.endAtMs)
      // Signals are sent from here on; the first search finds anything accepted before.
      await this.#listen()
      return await this.#search(looking)
    } finally {
      for (const one of opening) void one.then((leave) => leave()).catch(() => undefined)
    }
  }

  /** Searches again after each signal. */
  async #search({ endAtMs, look, isEmpty }: Looking): Promise<Answer> {
    let empty: Answer | null = null
    for (;;) {
      if (this.#refused !== null) return this.#refused
      if (this.#isNews) empty = null
      this.#isNews = false
      const answer = await look()
      const isLast = this.#isOver || performance.now() >= endAtMs
      if (isRefused(answer)) {
        // Many waits of an account can end at once. A refused search is not needed if nothing has happened since.
        if (isLast) return empty ?? answer
        // It has seen nothing: it is repeated without a signal.
        await this.#sleep(Math.min(REFUSED_REST_MS, endAtMs - performance.now()), () => this.#isOver)
        continue
      }
      if (isLast || !isEmpty(answer)) return answer
      empty = answer
      await this.#sleep(Math.min(REST_MS, endAtMs - performance.now()), () => this.#isOver)
      await this.#sleep(endAtMs - performance.now(), () => this.#isOver || this.#isNews)
    }
  }

  /** Waits for the subscriptions, which a store that does not answer holds, until the end at most. */
  async #opened(opening: readonly Promise<unknown>[], endAtMs: number): Promise<void> {
    let isOpen = false
    let fault: unknown
    Promise.all(opening).then(
      () => this.#stir(() => (isOpen = true)),
      (error) => this.#stir(() => (fault = error)),
    )
    await this.#sleep(endAtMs - performance.now(), () => isOpen || fault !== undefined || this.#isOver)
    if (fault !== undefined) throw fault
  }

  /** Has signals sent for the next minute, and proves the key. */
  async #listen(): Promise<void> {
    const { serverId, hash: keyHash } = this.#key
    const order = { name: 'listen', body: { serverId, keyHash } }
    const asked = await giveOrder<ListenReply>(this.#deps, homeShard(serverId), order)
    if (asked.answer !== undefined) this.#stir(() => (this.#refused = asked.answer))
  }

  #stir(change: () => void): void {
    change()
    this.#wake()
  }

  /** Sleeps until something is so, or the key is refused. */
  async #sleep(ms: number, isSo: () => boolean): Promise<void> {
    const endAtMs = performance.now() + ms
    while (this.#refused === null && !isSo()) {
      const leftMs = endAtMs - performance.now()
      if (leftMs <= 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}
