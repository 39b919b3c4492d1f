/**
 * mailbox - the exchange between two processes over Redis: parcels in, their content, replies out.
 *
 * Parcels of one turn of the loop travel as one call, for all shards, because a call costs the store more than a
 * parcel. In a cluster each parcel is a separate call, all in one write, because a call has one slot.
 *
 * Guarantees: an enqueue whose connection ended is `lost`, never refused, and is not sent a second time.
 */
import { inboxKey, mailboxKey, metaKey, outcomesKey, repliesKey, stagedKey } from '../keyspace.ts'
import { CALL_PARCELS_MAX } from '../mailbox/parcel.ts'
import type {
  Cursors,
  Enqueue,
  Enqueued,
  EntriesRequest,
  InboxEntry,
  Parcel,
  Replies,
  RepliesRequest,
} from '../store.ts'
import { parseVerdict } from './answer.ts'
import { type RedisLink, runScript, type StoreAnswer } from './link.ts'
import { bytesOfCommand } from './pack.ts'
import { ENQUEUE, ENTRIES, OUTCOME, REPLIES, type Script, SHARD_ENQUEUE, SHARD_OUTCOME } from './scripts.ts'

/** Maximum bytes of a call, because a large one delays the others of its connection. */
const CALL_BYTES_MAX = 1_048_576

export interface MailboxLinks {
  readonly reads: RedisLink
  /** One node of several, whose calls name keys of one shard only. */
  readonly isOfCluster?: boolean
  /** Opened with the first enqueue. */
  enqueues(): RedisLink | Promise<RedisLink>
}

export class RedisMailbox {
  private readonly links: MailboxLinks

  constructor(links: MailboxLinks) {
    this.links = links
  }

  async enqueue(request: Enqueue): Promise<readonly Enqueued[]> {
    const opened = this.links.enqueues()
    const link = opened instanceof Promise ? await opened : opened
    const { isOfCluster = false } = this.links
    const calls = isOfCluster ? request.parcels.map((parcel) => [parcel]) : groupIntoCalls(request.parcels)
    const script = isOfCluster ? SHARD_ENQUEUE : ENQUEUE
    const sent = calls.map((parcels) => send(link, script, { ...request, parcels }))
    return sent.length === 1 ? sent[0]! : (await Promise.all(sent)).flat()
  }

  async handIn({ shard, cmdId, body }: { shard: number; cmdId: string; body: Uint8Array }): Promise<boolean> {
    const keys = [metaKey(shard), outcomesKey(shard), stagedKey(shard, cmdId)]
    const link = await this.links.enqueues()
    const script = this.links.isOfCluster === true ? SHARD_OUTCOME : OUTCOME
    const answer = await runScript(link, script, bytesOfCommand(script.sha, keys, [String(shard), cmdId, body]))
    return answer.kind === 'reply' && answer.value === 1
  }

  async entries({ shard, of, from, count }: EntriesRequest): Promise<readonly InboxEntry[] | null> {
    const args = [from, String(count), stagedKey(shard, '')]
    const bytes = bytesOfCommand(ENTRIES.sha, [inboxKey(shard, of)], args)
    const answer = await runScript(this.links.reads, ENTRIES, bytes, { isBinary: true })
    return answer.kind === 'reply' ? (answer.value as (Buffer | null)[][]).map(entryOf) : null
  }

  /** The shards with waiting entries; null if none could be asked. */
  async waitingAt(cursors: readonly Cursors[]): Promise<readonly number[] | null> {
    if (cursors.length === 0) return []
    if (this.links.isOfCluster !== true) return this.waitingAmong(cursors)
    const found = await Promise.all(cursors.map((one) => this.waitingAmong([one])))
    return found.every((one) => one === null) ? null : found.flatMap((one) => one ?? [])
  }

  /** One read of all streams, because separate reads would cost the store more than their content. */
  private async waitingAmong(cursors: readonly Cursors[]): Promise<readonly number[] | null> {
    const keys = cursors.flatMap(({ shard }) => [mailboxKey(shard), outcomesKey(shard)])
    const ids = cursors.flatMap(({ mailbox, outcomes }) => [mailbox, outcomes])
    const answer = await this.links.reads.call('XREAD', 'COUNT', '1', 'STREAMS', ...keys, ...ids)
    if (answer.kind !== 'reply') return null
    const found = new Set(((answer.value ?? []) as [string, unknown][]).map(([key]) => key))
    return cursors
      .filter(({ shard }) => found.has(mailboxKey(shard)) || found.has(outcomesKey(shard)))
      .map(({ shard }) => shard)
  }

  async replies(parcels: readonly RepliesRequest[]): Promise<readonly (Replies | null)[]> {
    if (this.links.isOfCluster !== true || parcels.length < 2) return this.repliesAtOnce(parcels)
    return (await Promise.all(parcels.map((parcel) => this.repliesAtOnce([parcel])))).flat()
  }

  private async repliesAtOnce(parcels: readonly RepliesRequest[]): Promise<readonly (Replies | null)[]> {
    const keys = parcels.map(({ shard, slice }) => repliesKey(shard, slice))
    const ids = parcels.map(({ parcelId }) => parcelId)
    const answer = await runScript(this.links.reads, REPLIES, bytesOfCommand(REPLIES.sha, keys, ids))
    if (answer.kind !== 'reply') return parcels.map(() => null)
    const [nowMs, ...replies] = answer.value as [number, ...string[][]]
    return replies.map((fields) => ({ nowMs, fields }))
  }
}

/** Divides parcels into calls. */
function groupIntoCalls(parcels: readonly Parcel[]): Parcel[][] {
  const calls: Parcel[][] = []
  let bytes = 0
  for (const parcel of parcels) {
    const { length } = parcel.said
    const last = calls[calls.length - 1]
    if (last === undefined || last.length >= CALL_PARCELS_MAX || bytes + length > CALL_BYTES_MAX) {
      calls.push([parcel])
      bytes = length
    } else {
      last.push(parcel)
      bytes += length
    }
  }
  return calls
}

async function send(link: RedisLink, script: Script, { replyTo, commandsMax, parcels }: Enqueue): Promise<Enqueued[]> {
  const keys: string[] = []
  const args: (string | Uint8Array)[] = [replyTo, String(commandsMax)]
  for (const { shard, parcelId, count, said } of parcels) {
    keys.push(metaKey(shard), mailboxKey(shard), stagedKey(shard, parcelId))
    args.push(String(shard), parcelId, String(count), said)
  }
  const answer = await runScript(link, script, bytesOfCommand(script.sha, keys, args))
  return parcels.map((_parcel, place) => parseEnqueued(answer, place))
}

function parseEnqueued(answer: StoreAnswer, place: number): Enqueued {
  if (answer.kind === 'reply') return (answer.value as number[])[place] === 1 ? 'ok' : 'busy'
  // An error of the store means either that nothing ran, or that a script without checks failed half way, so the
  // outcome is unknown.
  if (answer.kind === 'error') {
    const { kind } = parseVerdict(answer)
    return kind === 'refused' || kind === 'away' ? 'unsent' : 'lost'
  }
  return answer.kind
}

function entryOf([id, parcelId, replyTo, body]: readonly (Buffer | null)[]): InboxEntry {
  return { id: String(id), parcelId: String(parcelId), replyTo: String(replyTo), body: body ?? null }
}
