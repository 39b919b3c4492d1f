/**
 * erase - the order to erase a person from all servers of an account.
 *
 * The commit of the 202 separates the address: the row from its HMAC to its number is removed, and from then on the
 * number leads to the pseudonym. So later data uses a new number and is not erased, and pending mail to the address
 * finds no recipient. The rest is done step by step (`walk.ts`); erasures of an account are executed one after the
 * other.
 *
 * Guarantees: the command has no address, only its HMAC and the pseudonym; each order is a separate erasure, and a
 * second one of the same address erases later data.
 *
 * Keys: erasing, erasures, person, audit
 *
 * Spec erasure.create, erasure.cut, refusal.order
 */

import type { CommandType, Fact, Op } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { auditOps } from '../../state/audit.ts'
import { monthName } from '../../state/calendar.ts'
import { domainName } from '../../state/domain.ts'
import {
  countErasedOp,
  type ErasedMailbox,
  type ErasureState,
  type ErasuresCounters,
  type ErasureWalk,
  eraseDue,
  erasedFact,
  erasureOwner,
  erasureRef,
  erasuresOwner,
  WALK_BEGIN,
} from '../../state/erasure.ts'
import { erasingKey, erasuresKey, namesKey } from '../../state/keys.ts'
import { keyOfNumber } from '../../state/person/buckets.ts'
import { type PersonRow, packErased, personFacts, personRowIn } from '../../state/person/person.ts'
import { type AccountOrder, refuseOrder } from '../authorization/domain.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'

/** Maximum pending erasures of an account; beyond it orders are refused until some are done. */
export const ERASURES_OPEN_MAX = 10_000

export interface EraseBody extends AccountOrder {
  /** HMAC of the address within the account. */
  readonly hmac: string
  /** Its local part. */
  readonly pseudonym: string
  /** The part after the address's @, in lower case. */
  readonly domain: string
  /** The inbound stream of the address, or null. */
  readonly mailbox: ErasedMailbox | null
}

export interface ErasureOrdered {
  readonly kind: 'erasure'
  readonly erasure: ErasureState
}

export const erase: CommandType<EraseBody, ErasureOrdered | Refused> = {
  name: 'erase',
  frees: true,
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: ({ accountId }) => [erasuresOwner(accountId)],
  facts: ({ accountId, hmac, domain }, _states, { shard }) => [
    ...personFacts({ shard, accountId }, [hmac]),
    domainFact(shard, accountId, domain),
    erasedFact(shard),
  ],
  decide(body, states, facts, context) {
    const refusal = refuseOrder(body, states, { facts, context })
    if (refusal !== null) return refusal
    const { accountId, keyHash, hmac, pseudonym, domain, mailbox } = body
    const { shard, nowMs } = context
    const open = states.counter<ErasuresCounters>(erasuresOwner(accountId))?.open ?? 0
    if (open >= ERASURES_OPEN_MAX) return refuse('unavailable')
    const erasureId = context.newId()
    const erasure: ErasureState = {
      erasureId,
      accountId,
      completedAtMs: null,
      pseudonym: null,
      messages: null,
      receivedMessages: null,
    }
    const row = personRowIn(facts, { shard, accountId, hmac })
    // For data from before senders were recorded: any address of a sending domain may have sent.
    const mayHaveSent = facts.field(namesKey(shard, accountId), domainName(domain)) !== null
    const walk: ErasureWalk = {
      hmac,
      pseudonym,
      number: row?.number ?? 0,
      sends: row !== null && (row.sends === true || (mayHaveSent && row.isNumberOnly !== true)),
      mailbox,
      messages: 0,
      receivedMessages: 0,
      looks: 0,
      place: WALK_BEGIN,
    }
    const account = states.get<AccountState>(accountRef(accountId))
    const actor = account.keys.find(({ hash }) => hash === keyHash)?.tokenId ?? null
    const by = { actor, act: 'createErasure', note: null } as const
    return {
      kind: 'done',
      reply: { kind: 'erasure', erasure },
      events: [{ ref: erasureRef(erasureId), event: { type: 'ordered', erasure } }],
      ops: [
        ...(row === null ? [] : cutOps({ shard, accountId, hmac, erasureId, pseudonym }, row)),
        { key: erasingKey(shard, accountId), write: 'HSET', args: [hmac, erasureId] },
        { key: erasuresKey(shard, accountId), write: 'ZADD', args: [String(msOf(erasureId)), erasureId] },
        countErasedOp(facts, shard, ({ ordered }) => ({ ordered: ordered + 1 })),
        ...auditOps(context, by, { targets: { accountId, erasureId }, before: null, after: { status: 'pending' } }),
      ],
      counters: [
        { owner: erasureOwner(erasureId), value: walk },
        { owner: erasuresOwner(accountId), value: { open: open + 1 } satisfies ErasuresCounters },
      ],
      // The end of the one before places the next.
      due: open === 0 ? [eraseDue(erasure, nowMs)] : [],
    }
  },
}

function domainFact(shard: number, accountId: string, domain: string): Fact {
  return { read: 'fields', key: namesKey(shard, accountId), fields: [domainName(domain)] }
}

/** The address leads nowhere, and its number to the pseudonym. */
function cutOps(
  of: { shard: number; accountId: string; hmac: string; erasureId: string; pseudonym: string },
  row: PersonRow,
): Op[] {
  const { shard, accountId, hmac, erasureId, pseudonym } = of
  const key = keyOfNumber(shard, accountId, row.number)
  const cut: Op = { key, write: 'HDEL', args: [hmac] }
  // A person who has only sent to the account has no address there.
  if (row.isNumberOnly === true) return [cut]
  const months = [row.month, monthName(msOf(erasureId))].sort()
  return [cut, { key, write: 'HSET', args: [String(row.number), packErased(months[1] as string, pseudonym)] }]
}
