/**
 * filter - which events of messages a webhook gets: those of its names, its stream, its tag and its metadata entry
 *
 * Rows of a message are read only if a webhook asks for them. A message written by the same commit has no rows yet, so
 * its command supplies the data.
 *
 * Keys: `log head:<server>:<segment>`, `content:<id>:head:0`
 *
 * Spec webhook.filter
 */

import type { Context, Fact, Facts } from '../../../cluster/behaviour.ts'
import { shortId } from '../../../cluster/id.ts'
import { HEAD_PART } from '../../state/broadcast/content.ts'
import { contentKey } from '../../state/keys.ts'
import { unpackHead } from '../../state/message/head.ts'
import { MessageRows } from '../../state/message/row.ts'
import type { ServerState } from '../../state/server.ts'
import type { MailReference } from '../../state/webhook/item.ts'
import type { Subscriber } from '../../state/webhook/webhook.ts'

/** The values of a message that webhooks filter by. */
export interface Labels {
  readonly tagHash: string | null
  readonly metadata: Readonly<Record<string, string>>
  /** Content of the broadcast whose messages share further metadata; null: it is of none. */
  readonly sharedIn: string | null
}

/** Events of messages of one server, as webhooks filter them. */
export interface FilterInput {
  readonly server: ServerState
  readonly news: readonly MailReference[]
  /** Streams and labels of the messages if the command knows them. */
  readonly streamIds?: readonly string[] | undefined
  readonly labels?: readonly Labels[] | undefined
  /** Webhooks that get at least one of the events by its name. */
  readonly wanted: readonly Subscriber[]
  readonly turn: { readonly facts: Facts; readonly context: Pick<Context, 'shard'> }
}

/** Whether a webhook gets events with that name. */
export function wants({ enabled, events }: Subscriber, event: Subscriber['events'][number]): boolean {
  return enabled && events.includes(event)
}

/** Decides which events pass to which webhook. */
export class NewsFilter {
  readonly #of: FilterInput

  constructor(of: FilterInput) {
    this.#of = of
  }

  /** Reads that the filters need. Some depend on others: ask again once these are read. */
  reads(): readonly Fact[] {
    const { wanted, news, streamIds, labels, turn } = this.#of
    const needsStream = streamIds === undefined && wanted.some(({ streamId }) => streamId !== null)
    const needsTag = labels === undefined && wanted.some((one) => one.tagHash != null)
    const needsMetadata = wanted.some((one) => one.metadata != null)
    const facts: Fact[] = []
    for (const [place, one] of news.entries()) {
      if (one.kind === 'inbound' && !needsStream) continue
      const rows = this.#rowsOf(one)
      const missing = needsStream || needsTag ? rows.missingEntry(turn.facts, one.messageId) : []
      facts.push(...missing)
      if (!needsMetadata || one.kind === 'inbound') continue
      const head = rows.headsFact([shortId(one.messageId)])
      // The head may be known from an earlier turn while the entry is not.
      const isThere = labels !== undefined || (missing.length === 0 && turn.facts.has(head))
      if (labels === undefined) facts.push(head)
      const { sharedIn } = isThere ? this.#labelsOf(place, one) : NO_LABELS
      if (sharedIn !== null) facts.push(sharedFact(turn.context.shard, sharedIn))
    }
    return facts
  }

  /** Whether a webhook gets an event. Takes the event and its place among the news. */
  passes(listener: Subscriber, place: number, one: MailReference): boolean {
    const { streamId, tagHash, metadata } = listener
    if (!wants(listener, one.event)) return false
    if (streamId !== null && streamId !== this.#streamOf(place, one)) return false
    if (tagHash == null && metadata == null) return true
    if (one.kind === 'inbound') return false
    const labels = this.#labelsOf(place, one)
    if (tagHash != null && tagHash !== labels.tagHash) return false
    return metadata == null || this.#valueOf(labels, metadata.name) === metadata.value
  }

  #rowsOf({ segment }: MailReference): MessageRows {
    const { server, turn } = this.#of
    return new MessageRows(turn.context.shard, { serverId: server.serverId, segment })
  }

  #streamOf(place: number, one: MailReference): string | null {
    const { streamIds, server, turn } = this.#of
    if (streamIds !== undefined) return streamIds[place] ?? null
    const entry = this.#rowsOf(one).entry(turn.facts, one.messageId)
    return entry === null ? null : (entry.streamId ?? server.defaultStreamId)
  }

  #labelsOf(place: number, one: MailReference): Labels {
    const { labels, wanted, turn } = this.#of
    if (labels !== undefined) return labels[place] ?? NO_LABELS
    const rows = this.#rowsOf(one)
    const needsTag = wanted.some(({ tagHash }) => tagHash != null)
    const tagHash = needsTag ? (rows.entry(turn.facts, one.messageId)?.tagHash ?? null) : null
    if (wanted.every((listener) => listener.metadata == null)) return { ...NO_LABELS, tagHash }
    const packed = rows.head(turn.facts, shortId(one.messageId))
    if (packed === null) return { ...NO_LABELS, tagHash }
    const { metadata, broadcast } = unpackHead(packed, 0)
    return { tagHash, metadata, sharedIn: broadcast?.contentId || null }
  }

  /** A value of a message's own metadata, otherwise of its broadcast's. */
  #valueOf({ metadata, sharedIn }: Labels, name: string): string | null {
    if (Object.hasOwn(metadata, name)) return metadata[name] ?? null
    const { facts, context } = this.#of.turn
    const shared = sharedIn === null ? null : facts.value(sharedFact(context.shard, sharedIn).key)
    if (shared === null) return null
    const { metadata: all } = unpackHead(shared, 0)
    return Object.hasOwn(all, name) ? (all[name] ?? null) : null
  }
}

const NO_LABELS: Labels = { tagHash: null, metadata: {}, sharedIn: null }

function sharedFact(shard: number, contentId: string): Fact & { readonly read: 'value' } {
  return { read: 'value', key: contentKey(shard, contentId, HEAD_PART, 0) }
}
