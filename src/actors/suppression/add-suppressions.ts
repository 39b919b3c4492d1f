/**
 * add-suppressions - puts addresses onto a stream's suppression list by the client's own order, for moving in.
 *
 * An address that is on the list already stays, and its entry takes a worse reason.
 *
 * Spec suppression.add
 */

import type { CommandType, Fact, Op } from '../../../cluster/behaviour.ts'
import { monthName } from '../../state/calendar.ts'
import { keyOfNumber } from '../../state/person/buckets.ts'
import { type NamedPerson, PersonNumbers, packPerson, personFacts, personRowIn } from '../../state/person/person.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { isWorse, type Suppression, suppressedFacts, suppressionIn } from '../../state/suppression.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { authorizeKeyHolder, type TokenOrder, tokenOrderEntities } from '../authorization/token.ts'
import { markEvents, rowOp, suppressionEntryOps } from './suppress.ts'

export interface AddSuppressionsBody extends TokenOrder {
  readonly serverId: string
  readonly streamId: string
  /** Each once. */
  readonly recipients: readonly NamedPerson[]
  /** Absent: `manual`. */
  readonly reason?: Suppression['reason']
}

export interface SuppressionsAdded {
  readonly kind: 'added'
  readonly added: number
  readonly existing: number
}

export const addSuppressions: CommandType<AddSuppressionsBody, SuppressionsAdded | Refused> = {
  name: 'add-suppressions',
  entities: (body) => [...tokenOrderEntities(body), streamRef(body.streamId)],
  counters: () => [],
  facts(body, _states, { shard }): Fact[] {
    const hmacs = body.recipients.map(({ hmac }) => hmac)
    return [
      ...suppressedFacts(shard, body.streamId, hmacs),
      ...personFacts({ shard, accountId: body.accountId }, hmacs),
    ]
  },
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const holder = authorizeKeyHolder(body, states, { facts, context })
    if ('kind' in holder) return holder
    const { accountId, serverId, streamId, recipients, reason = 'manual' } = body
    const stream = states.get<StreamState | null>(streamRef(streamId))
    if (stream === null || stream.serverId !== serverId) return refuse('stream_not_found')
    if (stream.kind === 'inbound') return refuse('stream_kind_not_allowed')
    const fresh = recipients.filter(({ hmac }) => suppressionIn(facts, shard, { streamId, hmac }) === null)
    const persons = new PersonNumbers(facts, { shard, accountId })
    const month = monthName(nowMs)
    const rest = { reason, messageId: null, code: null, response: null }
    const entries: Op[] = []
    for (const { hmac } of recipients) {
      const known = suppressionIn(facts, shard, { streamId, hmac })
      if (known !== null && isWorse(reason, known.reason))
        entries.push(rowOp(shard, { streamId, hmac }, { ...known, ...rest, number: known.number }))
    }
    for (const person of fresh) {
      const number = persons.numberOf(person, month)
      const entry = { suppressionId: context.newId(), number, ...rest }
      const place = { streamId, hmac: person.hmac }
      // Written after the person's own row, which may be new.
      const row = personRowIn(facts, { shard, accountId, hmac: person.hmac })
      const key = keyOfNumber(shard, accountId, number)
      const lastMonth = row !== null && row.month > month ? row.month : month
      const sends = row?.sends === true
      const counted = packPerson({ number, month: lastMonth, suppressions: (row?.suppressions ?? 0) + 1, sends })
      entries.push(
        { key, write: 'HSET', args: [person.hmac, counted] },
        ...suppressionEntryOps(shard, serverId, { place, entry }),
      )
    }
    return {
      kind: 'done',
      reply: { kind: 'added', added: fresh.length, existing: recipients.length - fresh.length },
      ops: [...persons.ops(), ...entries],
      events: fresh.length === 0 ? [] : markEvents(stream),
    }
  },
}
