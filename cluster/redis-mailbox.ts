/**
 * redis-mailbox - the way between two processes over Redis: commands in, what they say, replies out.
 *
 * Commands that are enqueued in one turn of the loop for one shard travel as one call: the store's work for a call is
 * larger than that for a command. They keep their order.
 *
 * Guarantees: an enqueue whose connection ended is `lost`, never refused, and is not sent a second time.
 */
import { bellChannel, inboxKey, mailboxKey, outcomesKey, repliesChannel, repliesKey, stagedKey } from './keyspace.ts'
import { OUTCOME_KEPT_MS, STAGED_MS } from './mailbox-script.ts'
import { bytesOfCommand } from './pack.ts'
import type { Answer, RedisLink } from './redis-link.ts'
import { verdictOf } from './redis-verdict.ts'
import { ENQUEUE, ENTRIES, OUTCOME, REPLY, runScript } from './scripts.ts'
import type { Cursors, Enqueue, Inbox, InboxEntry, Store } from './store.ts'

/** Commands and bytes of one call: a large one delays the others of its connection. */
const CALL_COMMANDS_MAX = 256
const CALL_BYTES_MAX = 1_048_576

type Enqueued = Awaited<ReturnType<Store['enqueue']>>

interface Waiting {
  readonly request: Enqueue
  readonly settle: (result: Enqueued) => void
}

export interface MailboxLinks {
  /** Reads, and what is told to others. */
  readonly reads: RedisLink
  /** Opened with the first enqueue. */
  enqueues(): RedisLink | Promise<RedisLink>
}

export class RedisMailbox {
  private readonly links: MailboxLinks
  private waiting = new Map<number, Waiting[]>()

  constructor(links: MailboxLinks) {
    this.links = links
  }

  enqueue(request: Enqueue): Promise<Enqueued> {
    return new Promise((settle) => {
      if (this.waiting.size === 0) setImmediate(() => void this.flush())
      const mine = this.waiting.get(request.shard)
      if (mine === undefined) this.waiting.set(request.shard, [{ request, settle }])
      else mine.push({ request, settle })
    })
  }

  async handIn({ shard, cmdId, body }: { shard: number; cmdId: string; body: Uint8Array }): Promise<boolean> {
    const keys = [outcomesKey(shard), stagedKey(shard, cmdId)]
    const args = [bellChannel(shard), '0', String(OUTCOME_KEPT_MS), cmdId, 'outcome', '', '0', body]
    const link = await this.links.enqueues()
    const answer = await runScript(link, OUTCOME, bytesOfCommand(OUTCOME.sha, keys, args))
    return answer.kind === 'reply'
  }

  async entries(request: {
    shard: number
    of: Inbox
    after: string
    count: number
  }): Promise<readonly InboxEntry[] | null> {
    const { shard, of, after, count } = request
    const args = [after === '' ? '-' : `(${after}`, String(count), stagedKey(shard, '')]
    const bytes = bytesOfCommand(ENTRIES.sha, [inboxKey(shard, of)], args)
    const answer = await runScript(this.links.reads, ENTRIES, bytes, { isBinary: true })
    return answer.kind === 'reply' ? (answer.value as (Buffer | null)[][]).map(entryOf) : null
  }

  /** One read of all streams: a read of each would cost the store more than what lies in them. */
  async waitingAt(cursors: readonly Cursors[]): Promise<readonly number[] | null> {
    if (cursors.length === 0) return []
    const keys = cursors.flatMap(({ shard }) => [mailboxKey(shard), outcomesKey(shard)])
    const ids = cursors.flatMap(({ mailbox, outcomes }) => [mailbox || '0-0', outcomes || '0-0'])
    const answer = await this.links.reads.call('XREAD', 'COUNT', '1', 'STREAMS', ...keys, ...ids)
    if (answer.kind !== 'reply') return null
    const found = new Set(((answer.value ?? []) as [string, unknown][]).map(([key]) => key))
    return cursors
      .filter(({ shard }) => found.has(mailboxKey(shard)) || found.has(outcomesKey(shard)))
      .map(({ shard }) => shard)
  }

  tell(worker: string, text: string): void {
    void this.links.reads.call('PUBLISH', repliesChannel(worker), text)
  }

  async reply(request: {
    shard: number
    cmdId: string
    slice: number
  }): Promise<{ reply: string | null; nowMs: number } | null> {
    const bytes = bytesOfCommand(REPLY.sha, [repliesKey(request.shard, request.slice)], [request.cmdId])
    const answer = await runScript(this.links.reads, REPLY, bytes)
    if (answer.kind !== 'reply') return null
    const [reply, nowMs] = answer.value as [string | null, number]
    return { reply, nowMs }
  }

  private async flush(): Promise<void> {
    const all = this.waiting
    this.waiting = new Map()
    const link = await this.links.enqueues()
    for (const waiting of all.values()) for (const call of callsOf(waiting)) void send(link, call)
  }
}

/** Divides what waits for one shard into calls. */
function callsOf(waiting: readonly Waiting[]): Waiting[][] {
  const calls: Waiting[][] = []
  let bytes = 0
  for (const one of waiting) {
    const { length } = one.request.body
    const last = calls[calls.length - 1]
    if (last === undefined || last.length >= CALL_COMMANDS_MAX || bytes + length > CALL_BYTES_MAX) {
      calls.push([one])
      bytes = length
    } else {
      last.push(one)
      bytes += length
    }
  }
  return calls
}

async function send(link: RedisLink, call: readonly Waiting[]): Promise<void> {
  const { shard, entriesMax } = call[0]!.request
  const keys = [mailboxKey(shard)]
  const args: (string | Uint8Array)[] = [bellChannel(shard), String(entriesMax), String(STAGED_MS)]
  for (const { request } of call) {
    const { cmdId, name, replyTo, deadlineMs, body } = request
    keys.push(stagedKey(shard, cmdId))
    args.push(cmdId, name, replyTo, String(deadlineMs), body)
  }
  const answer = await runScript(link, ENQUEUE, bytesOfCommand(ENQUEUE.sha, keys, args))
  call.forEach(({ settle }, place) => {
    settle(resultOf(answer, place))
  })
}

function resultOf(answer: Answer, place: number): Enqueued {
  if (answer.kind === 'reply') return place < (answer.value as number) ? 'ok' : 'busy'
  // An error of the store means that nothing ran, or that a script which checks nothing failed half way: in doubt.
  if (answer.kind === 'error') return verdictOf(answer).kind === 'refused' ? 'unsent' : 'lost'
  return answer.kind
}

function entryOf([id, cmdId, name, replyTo, deadline, body]: readonly (Buffer | null)[]): InboxEntry {
  return {
    id: String(id),
    cmdId: String(cmdId),
    name: String(name),
    replyTo: String(replyTo),
    deadlineMs: Number(deadline),
    body: body ?? null,
  }
}
