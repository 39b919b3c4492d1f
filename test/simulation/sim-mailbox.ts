/**
 * sim-mailbox - the messages between two processes over the in-memory store: entries, their contents, bells, replies.
 */
import type { Entry } from '../../cluster/behaviour.ts'
import { entryIdAfter, sortableEntryId } from '../../cluster/id.ts'
import { inboxKey, mailboxKey, metaKey, outcomesKey, repliesKey, stagedKey } from '../../cluster/keyspace.ts'
import { parseCursor } from '../../cluster/mailbox/cursor.ts'
import { ENTRIES_BYTES_MAX } from '../../cluster/mailbox/parcel.ts'
import { BELL_BYTES_MAX, OUTCOME_KEPT_MS, STAGED_MS } from '../../cluster/redis/mailbox-script.ts'
import type {
  Bell,
  Cursors,
  Enqueue,
  Enqueued,
  EntriesRequest,
  Inbox,
  InboxEntry,
  Replies,
  RepliesRequest,
} from '../../cluster/store.ts'
import { MOVE_PREFIX } from '../../cluster/store.ts'
import { applyOp, bytesOf, type SimData, textOf } from './sim-data.ts'

interface Deps {
  readonly nowMs: () => number
  /** Remembers what a write is about to change. */
  readonly step: (keys: readonly string[]) => void
  readonly ring: (owner: string, bells: readonly Bell[]) => void
}

export class SimMailbox {
  private readonly data: SimData
  private readonly deps: Deps

  constructor(data: SimData, deps: Deps) {
    this.data = data
    this.deps = deps
  }

  async enqueue({ replyTo, commandsMax, parcels }: Enqueue, isFull: boolean): Promise<readonly Enqueued[]> {
    if (isFull) return parcels.map(() => 'unsent')
    const rung = new Map<string, Bell[]>()
    const taken = parcels.map(({ shard, parcelId, count, said }): Enqueued => {
      if (this.ownerOf(shard).startsWith(MOVE_PREFIX)) return 'busy'
      const before = this.endOfMailbox(shard)
      const waiting = this.inboxOf(shard, 'mailbox')
      if (waiting.reduce((sum, { fields }) => sum + Number(fields[5]), 0) >= commandsMax) return 'busy'
      const sum = Number(waiting.at(-1)?.fields[7] ?? 0) + count
      const fields = ['parcel', parcelId, 'to', replyTo, 'n', String(count), 'sum', String(sum)]
      const [lastMs = '', lastLow = ''] = before.split('-')
      const id = this.deps.nowMs() > Number(lastMs) ? `${this.deps.nowMs()}-0` : `${lastMs}-${BigInt(lastLow) + 1n}`
      this.put('mailbox', { shard, name: parcelId, said }, { fields, lifeMs: STAGED_MS, id })
      const owner = this.ownerOf(shard)
      const entry = said.length > BELL_BYTES_MAX ? null : { id, parcelId, replyTo, body: said }
      rung.set(owner, [...(rung.get(owner) ?? []), { shard, entry, before }])
      return 'ok'
    })
    for (const [owner, bells] of rung) this.deps.ring(owner, bells)
    return taken
  }

  async handIn(request: { shard: number; cmdId: string; body: Uint8Array }): Promise<boolean> {
    const { shard, cmdId, body } = request
    if (this.ownerOf(shard).startsWith(MOVE_PREFIX)) return false
    const stream = this.data.get(outcomesKey(shard), this.deps.nowMs())
    const [lastMs = '', lastLow = ''] = (stream?.kind === 'stream' ? stream.last : '0-0').split('-')
    const id = this.deps.nowMs() > Number(lastMs) ? `${this.deps.nowMs()}-0` : `${lastMs}-${BigInt(lastLow) + 1n}`
    const fields = ['cmd', cmdId, 'to', '']
    this.put('outcomes', { shard, name: cmdId, said: body }, { fields, lifeMs: OUTCOME_KEPT_MS, id })
    const owner = this.ownerOf(shard)
    this.deps.ring(owner, [{ shard, entry: null, before: '' }])
    return true
  }

  async entries({ shard, of, from, count }: EntriesRequest): Promise<readonly InboxEntry[] | null> {
    const isAfter = from.startsWith('(')
    const first = isAfter ? entryIdAfter(from.slice(1)) : from
    const read: InboxEntry[] = []
    let bytes = 0
    for (const { id, fields } of this.inboxOf(shard, of)) {
      if (sortableEntryId(id) < sortableEntryId(first) || read.length === count || bytes >= ENTRIES_BYTES_MAX) continue
      const [, parcelId = '', , replyTo = ''] = fields
      const said = this.data.get(stagedKey(shard, parcelId), this.deps.nowMs())
      const body = said?.kind === 'text' ? bytesOf(said.text) : null
      bytes += body?.length ?? 0
      read.push({ id, parcelId, replyTo, body })
    }
    return read
  }

  async waiting(cursors: readonly Cursors[]): Promise<readonly number[] | null> {
    return cursors
      .filter(
        ({ shard, mailbox, outcomes }) =>
          this.inboxAfter(shard, 'mailbox', mailbox).length + this.inboxAfter(shard, 'outcomes', outcomes).length > 0,
      )
      .map(({ shard }) => shard)
  }

  async replies(parcels: readonly RepliesRequest[]): Promise<readonly Replies[]> {
    const replies = parcels.map(({ shard, parcelId, slice }) => {
      const fields = this.hashOf(repliesKey(shard, slice))
      const found: string[] = []
      for (let place = 0, count = 1; count > 0; place += count) {
        const value = fields.get(`${parcelId}/${place}`)
        count = Number(/^\d+/.exec(value ?? '')?.[0] ?? 0)
        if (value !== undefined && count > 0) found.push(value)
      }
      return found
    })
    return replies.map((fields) => ({ nowMs: this.deps.nowMs(), fields }))
  }

  /** One entry and its contents. */
  private put(
    of: Inbox,
    { shard, name, said }: { shard: number; name: string; said: Uint8Array },
    { fields, lifeMs, id }: { fields: readonly string[]; lifeMs: number; id: string },
  ): void {
    const key = inboxKey(shard, of)
    this.deps.step([key, stagedKey(shard, name)])
    this.data.setText(stagedKey(shard, name), textOf(said), this.deps.nowMs() + lifeMs)
    applyOp(this.data, { key, write: 'XADD', args: [id, ...fields] }, this.deps.nowMs())
  }

  /** The higher of the mailbox's cursor and its last entry. */
  private endOfMailbox(shard: number): string {
    const { entryId } = parseCursor(this.hashOf(metaKey(shard)).get('cur') ?? '')
    const last = this.inboxOf(shard, 'mailbox').at(-1)?.id ?? '0-0'
    return sortableEntryId(last) > sortableEntryId(entryId) ? last : entryId
  }

  private inboxOf(shard: number, of: Inbox): readonly Entry[] {
    const stream = this.data.get(inboxKey(shard, of), this.deps.nowMs())
    return stream?.kind === 'stream' ? stream.entries : []
  }

  private inboxAfter(shard: number, of: Inbox, after: string): readonly Entry[] {
    return this.inboxOf(shard, of).filter(({ id }) => sortableEntryId(id) > sortableEntryId(after))
  }

  /** Loses what was enqueued for a shard. */
  forget(shard: number): void {
    for (const { fields } of this.inboxOf(shard, 'mailbox')) this.data.remove(stagedKey(shard, fields[1] ?? ''))
    this.data.remove(mailboxKey(shard))
  }

  private ownerOf(shard: number): string {
    return this.hashOf(metaKey(shard)).get('owner') ?? ''
  }

  private hashOf(key: string): ReadonlyMap<string, string> {
    const value = this.data.get(key, this.deps.nowMs())
    return value?.kind === 'hash' ? value.fields : new Map()
  }
}
