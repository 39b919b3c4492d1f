/**
 * click - the timer of a click on an unsubscribe link: for a minute it can be undone, then it counts
 *
 * The timer is called `unsubscribe:<o|l>.<hmac>.<item>`: `o` for one-click (RFC 8058), `l` for the page's button; the
 * item is the recipient's on its broadcast stream, and always written the same way, so that a second click finds the
 * first.
 *
 * Spec unsubscribe.minute
 */

import type { Due, Fact, Facts } from '../../../cluster/behaviour.ts'
import { shortId } from '../../../cluster/id.ts'
import { laneKey, TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { type AttemptItem, itemPrefix, itemSuffix, parseAttemptItem } from '../../state/message/item.ts'

export const UNSUBSCRIBE_TIMER = 'unsubscribe'
/** How long a click can be undone. */
export const UNDO_MS = 60_000

export type ClickSource = 'one_click' | 'link'

const LETTERS = { one_click: 'o', link: 'l' } as const satisfies Record<ClickSource, string>
const SOURCES: readonly ClickSource[] = ['one_click', 'link']

/** A recipient that clicked. */
export interface Clicker {
  /** HMAC of the address within its account. */
  readonly hmac: string
  /** The item of a message on a broadcast stream. */
  readonly item: AttemptItem
}

export interface Click extends Clicker {
  readonly source: ClickSource
}

/** The timer of a click at `nowMs`. */
export function unsubscribeDue(click: Click, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: formatClick(click), atMs: nowMs + UNDO_MS }
}

/** The reads of a person's pending clicks, one for each source. */
export function clickFacts(shard: number, of: Clicker): (Fact & { read: 'score' })[] {
  return SOURCES.map((source) => {
    return { read: 'score', key: laneKey(shard, TIMERS_LANE), member: formatClick({ ...of, source }) }
  })
}

/** The timers of a person's pending clicks. Their facts must have been fetched. */
export function waitingClicks(facts: Facts, shard: number, of: Clicker): string[] {
  return clickFacts(shard, of).flatMap(({ key, member }) => (facts.score(key, member) === null ? [] : [member]))
}

/** Reads the name of a timer. */
export function parseClick(timer: string): Click {
  const [letter, hmac = '', ...item] = timer.slice(UNSUBSCRIBE_TIMER.length + 1).split('.')
  const source = letter === LETTERS.one_click ? 'one_click' : 'link'
  return { source, hmac, item: parseAttemptItem(item.join('.')) }
}

function formatClick({ source, hmac, item }: Click): string {
  const { serverId, segment, messageId, recipient, recipients, broadcastStreamId } = item
  const suffix = itemSuffix(recipient, { recipients, hasAttachments: false, broadcastStreamId })
  const name = itemPrefix(serverId, segment, shortId(messageId)) + suffix
  return `${UNSUBSCRIBE_TIMER}:${LETTERS[source]}.${hmac}.${name}`
}
