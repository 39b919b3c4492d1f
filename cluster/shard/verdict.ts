/**
 * verdict - the action of a shard for the verdict on a commit: (verdict, flight) -> action
 *
 * Guarantees that unwritten work is decided again, in its order, before later work.
 */

import { Fault } from '../fault.ts'
import type { Commit, Verdict } from '../store.ts'
import type { Work, WorkSource } from '../work.ts'
import type { Plan } from './batch.ts'

/** The reaction to a verdict. `CommitLoop` performs it. */
export type Action =
  /** The commit happened. */
  | { readonly kind: 'confirm' }
  /** Another owner holds the shard, and recorded whether the commit had happened. */
  | { readonly kind: 'ask next owner' }
  /**
   * The cached state may be wrong. The next owner of the shard reads everything again and decides again. `storeSeq` is
   * the store's sequence number, if it has lost commits. `storeNowMs` is the store's clock.
   */
  | { readonly kind: 'give up'; readonly storeSeq?: number; readonly storeNowMs?: number }
  /**
   * The shard stops for good. `storeSeq` is the position of the store, if that is the reason. `isAgainstRules` means
   * that the commit was invalid.
   */
  | { readonly kind: 'halt'; readonly reason: string; readonly storeSeq?: number; readonly isAgainstRules?: true }
  | Again
  | Halve

/** An invalid commit, whose first half is committed alone, then the rest, until the offending command is found. */
export interface Halve {
  readonly kind: 'halve'
  readonly reason: string
  readonly first: readonly Work[]
  readonly rest: readonly Work[]
  /** Set if `first` is that command, whose turn ends with this fault. */
  readonly blame: Fault | null
}

/** The commit did not happen: `works` are decided again, before anything that came later. */
export interface Again {
  readonly kind: 'again'
  readonly works: readonly Work[]
  /** Asks that are answered `unavailable`. */
  readonly refused: readonly Work[]
  /**
   * The refused ones are also past their deadline; a command of the mailbox is refused by the commit that passes its
   * entry.
   */
  readonly areLate?: true
  /** The store's clock, which this process's was too far from. */
  readonly storeNowMs?: number
  /** For a while, the store accepts only work that finishes or frees something. */
  readonly isFull?: true
  /** The store has answered, so the shard is not stuck. */
  readonly isAway?: true
  /** Nothing is decided for a moment. */
  readonly pauses?: true
}

/** The store refused the command's writes when they were alone in a commit. */
class Refused extends Fault {}

/** The subject of a verdict. */
interface Judged {
  readonly plan: Pick<Plan, 'works'>
  readonly commit: Pick<Commit, 'seq'>
  /** Whether the commit had an unknown outcome before this verdict. */
  readonly isDoubted: boolean
}

/**
 * Returns the action for a verdict, and changes nothing. A commit with an unknown outcome has no verdict yet: `lost`
 * is a fault.
 *
 * A commit with an unknown outcome may have been applied by a primary that was disconnected and then lost. Everything
 * read since, lanes and facts alike, may have come from there. If the commit did not happen, these reads are
 * worthless, and they cannot be distinguished from others. The shard is read again as a whole.
 */
export function actionOn(verdict: Verdict, { plan, commit, isDoubted }: Judged): Action {
  if (isDoubted && DENIALS.has(verdict.kind)) {
    const storeNowMs = verdict.kind === 'late' || verdict.kind === 'clock' ? verdict.nowMs : undefined
    return { kind: 'give up', ...(storeNowMs !== undefined && { storeNowMs }) }
  }
  const { works } = plan
  switch (verdict.kind) {
    case 'ok':
    case 'dup':
      return { kind: 'confirm' }
    case 'fenced':
      return { kind: 'ask next owner' }
    case 'conflict': {
      const { seq: storeSeq } = verdict
      if (storeSeq < commit.seq) return { kind: 'give up', storeSeq }
      return { kind: 'halt', reason: `Sequence number ${storeSeq} is above mine, ${commit.seq}`, storeSeq }
    }
    case 'torn':
      return { kind: 'halt', reason: verdict.reason }
    case 'clock':
    case 'late':
      return { kind: 'again', works, refused: [], storeNowMs: verdict.nowMs }
    case 'missing':
      return withoutExpired(works, verdict.key)
    case 'badop':
      return halve(works, verdict.reason)
    case 'refused':
      return withoutAsks(works)
    case 'away':
      return { kind: 'again', works, refused: [], pauses: true, isAway: true }
    case 'unsent':
      return { kind: 'again', works, refused: [], pauses: true }
    case 'lost':
      throw new Fault('The unknown outcome of a commit was settled')
  }
}

/** Verdicts of the current owner's store that nothing was written. */
const DENIALS: ReadonlySet<Verdict['kind']> = new Set(['clock', 'late', 'missing', 'badop'])

/** Content that an ask brought along has expired: that ask is refused, the rest decided again. */
function withoutExpired(works: readonly Work[], key: string): Action {
  const refused = works.filter(({ source, command }) => isAsk(source) && key.includes(command.cmdId))
  if (refused.length === 0) return halve(works, 'A key that a command names does not exist')
  const again = works.filter((work) => work.source === 'mailbox' || !refused.includes(work))
  return { kind: 'again', works: again, refused, areLate: true }
}

/** The store refused before anything ran: asks are refused, work that finishes or frees something is tried again. */
function withoutAsks(works: readonly Work[]): Action {
  const refused = works.filter(({ source }) => source === 'local')
  const again = works.filter(({ source }) => source !== 'local')
  return { kind: 'again', works: again, refused, isFull: true, pauses: true }
}

function halve(works: readonly Work[], reason: string): Action {
  const half = Math.max(1, works.length >> 1)
  const [only] = works
  const isAlone = works.length === 1
  // Its turn ended with a fault, orders nothing but that, and is refused all the same.
  if (isAlone && only?.broken instanceof Refused) return { kind: 'halt', reason, isAgainstRules: true }
  const blame = isAlone ? new Refused('The store refused what the command ordered', { reason }) : null
  return { kind: 'halve', reason, first: works.slice(0, half), rest: works.slice(half), blame }
}

function isAsk(source: WorkSource): boolean {
  return source === 'local' || source === 'mailbox'
}
