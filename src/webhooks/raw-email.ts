/**
 * raw-email - the source of a received mail, for the body of a webhook that asks for it, within a bound of memory
 *
 * A receiver may take seconds to answer, and its post is held until then. So many bytes of sources are held at once;
 * an attempt that gets no room within a second fails, and is repeated like any other.
 *
 * Spec webhook.raw
 */

import { setTimeout as pause } from 'node:timers/promises'
import { homeShard } from '../../cluster/id.ts'
import { RAW_EMAIL_BYTES_MAX } from '../../schemas/limits.ts'
import type { ContentHead } from '../state/received/content-head.ts'
import type { EventReference } from '../state/webhook/item.ts'
import type { WebhookState } from '../state/webhook/webhook.ts'
import { readOneReceived } from '../views/inbound/rows.ts'
import { isContentKept } from '../views/inbound/shown.ts'
import type { Reader } from '../views/key.ts'
import { EXAMPLE_MAIL } from '../views/message/example-event.ts'

/** Bytes of sources that are held at once. */
const HELD_BYTES_MAX = 64 * 1024 * 1024
/** Together with the seconds that a post may take, less than its claim. */
const WAIT_MS_MAX = 1_000
const WAIT_STEP_MS = 50

/** Opens a received mail in the content store. */
export type OpenRaw = (place: {
  readonly shard: number
  readonly serverId: string
  readonly head: Pick<ContentHead, 'objectId' | 'parsedId' | 'key'>
}) => Promise<{ readonly size: number; readonly pieces: AsyncIterable<Buffer> } | 'damaged' | 'away'>

export interface RawEmailDeps {
  readonly read: Reader
  readonly openRaw: OpenRaw
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** Whether a body has its source: `included`, `omitted` (too large, or no longer there), `no_room`. */
  readonly done: (result: 'included' | 'omitted' | 'no_room') => void
}

/** Which mail is posted where. */
interface RawPlace {
  readonly webhook: Pick<WebhookState, 'serverId' | 'inboundContent'>
  readonly reference: EventReference
}

/** Sources of received mail in this process. */
export class RawEmails {
  readonly #deps: RawEmailDeps
  #bytes = 0

  constructor(deps: RawEmailDeps) {
    this.#deps = deps
  }

  /**
   * Posts with the source of the mail, which is held until the end of the post; with null if the webhook does not ask
   * for it, the mail is larger than RAW_EMAIL_BYTES_MAX, or its content has expired. Returns `no_room` if too many are
   * held, and `away` if a store does not answer.
   */
  async post<Result>(
    { webhook, reference }: RawPlace,
    post: (raw: string | null) => Promise<Result>,
  ): Promise<Result | 'no_room' | 'away'> {
    if (webhook.inboundContent !== 'raw') return post(null)
    if (reference.kind === 'example' && reference.event === 'inbound') return post(EXAMPLE_MAIL)
    if (reference.kind !== 'inbound') return post(null)
    const found = await this.#open(webhook.serverId, reference)
    if (found === 'away') return found
    if (found === 'gone' || found.size > RAW_EMAIL_BYTES_MAX) {
      this.#deps.done('omitted')
      return post(null)
    }
    if (!(await this.#enter(found.size))) {
      this.#deps.done('no_room')
      return 'no_room'
    }
    try {
      const raw = await join(found.pieces)
      if (raw === null) return 'away'
      this.#deps.done('included')
      return await post(raw)
    } finally {
      this.#bytes -= found.size
    }
  }

  async #open(
    serverId: string,
    { segment, messageId }: Extract<EventReference, { kind: 'inbound' }>,
  ): Promise<Exclude<Awaited<ReturnType<OpenRaw>>, 'damaged'> | 'gone'> {
    const { read, openRaw, nowMs } = this.#deps
    const shard = homeShard(serverId)
    const stored = await readOneReceived(read, { shard, serverId }, { segment, messageId })
    if (stored === undefined) return 'away'
    if (stored === null || stored.head === null || !isContentKept(stored, nowMs())) return 'gone'
    const raw = await openRaw({ shard, serverId, head: stored.head })
    return raw === 'damaged' ? 'gone' : raw
  }

  /** Waits for room. */
  async #enter(bytes: number): Promise<boolean> {
    const fits = (): boolean => this.#bytes + bytes <= HELD_BYTES_MAX
    for (let waitedMs = 0; !fits() && waitedMs < WAIT_MS_MAX; waitedMs += WAIT_STEP_MS) await pause(WAIT_STEP_MS)
    if (!fits()) return false
    this.#bytes += bytes
    return true
  }
}

/** The whole mail as text; null if it was removed during the read, or is damaged, which the next attempt finds out. */
async function join(pieces: AsyncIterable<Buffer>): Promise<string | null> {
  const all: Buffer[] = []
  try {
    for await (const piece of pieces) all.push(piece)
  } catch {
    return null
  }
  return Buffer.concat(all).toString('utf8')
}
