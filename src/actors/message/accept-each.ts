/**
 * accept-each - which messages of a partial send are accepted.
 *
 * Each message is judged on its own, in the order of the request: it is refused by the first step that refuses it
 * alone. Limits are decided message by message, so a message that does not fit is refused and counts nothing, and a
 * smaller one after it may fit. The accepted messages are one commit.
 *
 * Spec batch.partial, limit.refusal
 */

import type { Decision } from '../../../cluster/behaviour.ts'
import { firstRefusal, type Limit } from '../../state/quota.ts'
import { isRefused, type Refused } from '../authorization/refusal.ts'
import type { RefusedMessage, SendReply } from './send.ts'
import type { SendTurn } from './send-turn.ts'

export interface JudgedEach {
  /** The turn with the accepted messages alone. */
  readonly turn: SendTurn
  readonly refused: readonly RefusedMessage[]
  /** Recipients of the first message that a monthly cap refused; 0: none. */
  readonly cappedRecipients: number
}

type Step = (turn: SendTurn) => Decision<SendReply> | null

/**
 * Judges each message. Takes the steps about messages without the limits; the refusal of a limit; and the step after
 * the limits, which runs with all messages that have passed so far.
 */
export function judgeEach(
  turn: SendTurn,
  steps: readonly Step[],
  { byLimit, last }: { readonly byLimit: (limit: Limit, requested: number) => Refused; readonly last: Step },
): JudgedEach {
  const places: number[] = []
  const refused: RefusedMessage[] = []
  let requested = 0
  let cappedRecipients = 0
  for (const [place, message] of turn.body.messages.entries()) {
    const own = message.recipients.length
    const alone = only(turn, [place], own)
    const refusal = findRefusal(alone, steps)
    if (refusal !== null) {
      refused.push({ place, code: refusal.code, extra: refusal.extra })
      continue
    }
    const limits = turn.limits.map((limit) => ({ ...limit, used: limit.used + requested }))
    const limit = firstRefusal(limits, own)
    if (limit !== null) {
      const { code, extra } = byLimit(limit, own)
      refused.push({ place, code, extra })
      if (limit.period === 'month' && cappedRecipients === 0) cappedRecipients = own
      continue
    }
    const full = message.sendAtMs === null ? null : findRefusal(only(turn, [...places, place], requested), [last])
    if (full !== null) {
      refused.push({ place, code: full.code, extra: full.extra })
      continue
    }
    places.push(place)
    requested += own
  }
  return { turn: only(turn, places, requested), refused, cappedRecipients }
}

function findRefusal(turn: SendTurn, steps: readonly Step[]): Refused | null {
  for (const step of steps) {
    const decision = step(turn)
    if (decision?.kind === 'refuse' && isRefused(decision.answer)) return decision.answer
  }
  return null
}

/** The turn with the messages at these places. */
function only(turn: SendTurn, places: readonly number[], requested: number): SendTurn {
  const messages = places.map((place) => turn.body.messages[place]!)
  const streams = places.map((place) => turn.streams[place] ?? null)
  return { ...turn, body: { ...turn.body, messages, batch: false }, streams, requested, places }
}
