/**
 * remote-ask - commands to shards that another process owns: into their mailbox, and the reply out of the store.
 *
 * The owner tells a reply right after its commit. What was told can be lost, so the store is asked as well: half a second
 * after the ask, and again until the deadline has passed.
 *
 * Guarantees: an enqueue whose reply was lost is never sent again; `unavailable` is said only when the store itself says
 * that the deadline has passed and there is no reply, because no commit can make the command true after that.
 */
import type { Command } from './behaviour.ts'
import type { Clock } from './clock.ts'
import { CMD_ID_CHARS, msOfCmdId } from './cmd-id.ts'
import { packStaged } from './staged.ts'
import type { Store } from './store.ts'
import type { AskResult } from './work.ts'

/** Entries that a mailbox holds; its owner takes 64 with each commit. */
const ENTRIES_MAX = 2_000
/** Asks of one process that wait. */
const ASKS_MAX = 20_000
const SLICE_MS = 2_000
const LOOK_MS = 500
/** A look right after the deadline finds that it has passed. */
const PAST_MS = 5
/** So long after the deadline a reply is surely still kept; later its absence says nothing. */
const REPLY_KEPT_MS = 30_000
/** No answer is looked for after this. */
const GIVE_UP_MS = 34_000

export interface RemoteAsk {
  readonly shard: number
  readonly command: Command
  /** By the store's clock. */
  readonly deadlineMs: number
}

interface Deps {
  readonly store: Store
  readonly clock: Clock
  readonly worker: string
}

/** One reply as it is told: the id of its command, then the reply. */
export function formatReply(cmdId: string, result: AskResult): string {
  return cmdId + JSON.stringify(result)
}

/** The asks of this process that wait for other processes. */
export class RemoteAsks {
  private readonly deps: Deps
  private readonly open = new Map<string, OpenAsk>()

  constructor(deps: Deps) {
    this.deps = deps
  }

  get size(): number {
    return this.open.size
  }

  /** Replies as they were told, one to a line. */
  heard(text: string): void {
    for (const line of text.split('\n')) {
      const ask = this.open.get(line.slice(0, CMD_ID_CHARS))
      if (ask !== undefined) ask.settle(JSON.parse(line.slice(CMD_ID_CHARS)) as AskResult)
    }
  }

  /** Sends a command to the owner of its shard and waits for its reply. Never rejects. */
  ask(asked: RemoteAsk): Promise<AskResult> {
    if (this.open.size >= ASKS_MAX) return Promise.resolve({ kind: 'unavailable' })
    return new Promise((resolve) => {
      const { cmdId } = asked.command
      const ask = new OpenAsk(this.deps, asked, (result) => {
        this.open.delete(cmdId)
        resolve(result)
      })
      this.open.set(cmdId, ask)
      void ask.send()
    })
  }
}

class OpenAsk {
  private readonly deps: Deps
  private readonly asked: RemoteAsk
  private readonly answer: (result: AskResult) => void
  private readonly startedAtMs: number
  private isOver = false
  private cancel: () => void = () => undefined

  constructor(deps: Deps, asked: RemoteAsk, answer: (result: AskResult) => void) {
    this.deps = deps
    this.asked = asked
    this.answer = answer
    this.startedAtMs = deps.clock.monotonicMs()
  }

  async send(): Promise<void> {
    const { shard, command, deadlineMs } = this.asked
    const { cmdId, name } = command
    this.lookAfter(LOOK_MS)
    const body = packStaged(command)
    const replyTo = this.deps.worker
    const request = { shard, cmdId, name, replyTo, deadlineMs, body, entriesMax: ENTRIES_MAX }
    const sent = await this.deps.store.enqueue(request)
    if (sent === 'busy' || sent === 'unsent') this.settle({ kind: 'unavailable' })
  }

  settle(result: AskResult): void {
    if (this.isOver) return
    this.isOver = true
    this.cancel()
    this.answer(result)
  }

  private lookAfter(ms: number): void {
    this.cancel = this.deps.clock.after(ms, () => void this.look())
  }

  private async look(): Promise<void> {
    const { store, clock } = this.deps
    const { shard, command, deadlineMs } = this.asked
    const { cmdId } = command
    const found = await store.reply({ shard, cmdId, slice: Math.floor(msOfCmdId(cmdId) / SLICE_MS) })
    if (this.isOver) return
    if (found !== null) {
      if (found.reply !== null) return this.settle(JSON.parse(found.reply) as AskResult)
      if (found.nowMs > deadlineMs + REPLY_KEPT_MS) return this.settle({ kind: 'silent' })
      if (found.nowMs > deadlineMs) return this.settle({ kind: 'unavailable' })
    }
    if (clock.monotonicMs() - this.startedAtMs >= GIVE_UP_MS) return this.settle({ kind: 'silent' })
    const leftMs = found === null ? LOOK_MS : deadlineMs - found.nowMs + PAST_MS
    this.lookAfter(Math.min(LOOK_MS, leftMs))
  }
}
