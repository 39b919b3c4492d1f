/**
 * tally - counts the recipients of the messages that filters hold for, by their present status
 *
 * One call looks at a bounded number of messages, and the next continues below them.
 *
 * Keys: those of `search.ts`
 *
 * Spec message.outcomes
 */

import type { Outcomes } from '../../../schemas/counts/outcomes.ts'
import { MESSAGES_LOOKED_AT_MAX } from '../../../schemas/limits.ts'
import { RECIPIENT_STATUSES } from '../../../schemas/message.ts'
import type { Reader, ServerKey } from '../key.ts'
import { type MessageFilter, type Passing, readPassing } from './filter.ts'
import { type Round, walkMessages } from './scan.ts'
import { beginWalk, type SearchDeps } from './search.ts'
import type { StoredMessage } from './summary.ts'

/** Candidates whose heads and statuses are read in one step, and what each costs in messages looked at. */
const CANDIDATES_AT_ONCE = 500
const CANDIDATE_WEIGHT = 2
/** Classes of one answer; the table of classes has fewer. */
const CLASSES_MAX = 100

type Refused = 'unauthorized' | 'unavailable' | 'stream_not_found'

/** Counts from the newest message down, or below `after`. */
export async function tallyMessages(
  { read, nowMs, lookedAtMax = MESSAGES_LOOKED_AT_MAX }: SearchDeps,
  owner: ServerKey,
  { filter, after }: { readonly filter: MessageFilter; readonly after: string | null },
): Promise<Outcomes | Refused> {
  const tally = new Tally()
  const walk = await beginWalk(read, owner, { filter, page: { after }, nowMs: nowMs() })
  if (walk === 'nothing') return tally.answer(null)
  if (typeof walk === 'string') return walk
  const passing: Passing = { owner, walk, filter, nowMs: nowMs() }
  let looked = 0
  let next: string | null = null
  for await (const round of walkMessages(read, walk, lookedAtMax)) {
    if (round === null) return 'unavailable'
    looked += round.looked
    const counted = await tallyRound({ read, passing, tally }, round, lookedAtMax - looked)
    if (counted === null) return 'unavailable'
    looked += counted.looked
    next = counted.stoppedAt ?? (round.isEnd ? null : round.last)
    if (looked >= lookedAtMax) break
  }
  return tally.answer(next)
}

interface Tallying {
  readonly read: Reader
  readonly passing: Passing
  readonly tally: Tally
}

/** Counts until as many messages were looked at; null if the store did not answer. */
async function tallyRound(
  { read, passing, tally }: Tallying,
  { found }: Round,
  lookedMax: number,
): Promise<{ readonly looked: number; readonly stoppedAt: string | null } | null> {
  let looked = 0
  for (let start = 0; start < found.length; start += CANDIDATES_AT_ONCE) {
    const slice = found.slice(start, start + CANDIDATES_AT_ONCE)
    const step = await readPassing(read, passing, slice)
    if (step === null) return null
    for (const message of step.passed) tally.add(message)
    looked += step.read * (CANDIDATE_WEIGHT - 1)
    const isLeft = start + slice.length < found.length
    if (looked >= lookedMax && isLeft) return { looked, stoppedAt: slice.at(-1)?.messageId ?? null }
  }
  return { looked, stoppedAt: null }
}

/** The counts while they grow. */
class Tally {
  private messages = 0
  private complained = 0
  private unsubscribed = 0
  private readonly statuses = new Map<string, number>()
  private readonly classes = new Map<string, number>()

  add({ recipients }: StoredMessage): void {
    this.messages += 1
    for (const { status, events } of recipients) {
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
      if (events.some(({ event }) => event === 'spam_complaint')) this.complained += 1
      if (events.some(({ event }) => event === 'unsubscribed')) this.unsubscribed += 1
      const bounce = events.findLast((one) => one.event === 'bounced')
      const name = bounce?.event === 'bounced' ? bounce.classification : null
      if (name !== null && (this.classes.has(name) || this.classes.size < CLASSES_MAX))
        this.classes.set(name, (this.classes.get(name) ?? 0) + 1)
    }
  }

  answer(next: string | null): Outcomes {
    const counts = RECIPIENT_STATUSES.map((status) => [status, this.statuses.get(status) ?? 0] as const)
    return {
      messages: this.messages,
      recipients: Object.fromEntries(counts) as Outcomes['recipients'],
      complained: this.complained,
      unsubscribed: this.unsubscribed,
      classifications: Object.fromEntries(this.classes),
      next,
    }
  }
}
