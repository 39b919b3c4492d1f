/**
 * add-domain - adds a sending domain to an account, unverified. The key pair was made before; the private key is
 * sealed.
 *
 * Spec domain.add, domain.test-use
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { accountRef } from '../../state/account.ts'
import { keepPairOps } from '../../state/dkim-pair.ts'
import { type DomainState, domainName, domainRef, sendingOps } from '../../state/domain.ts'
import { dkimKey, domainsKey, namesKey } from '../../state/keys.ts'
import { type AccountOrder, refuseOrder } from '../authorization/domain.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { firstCheckDue, nextCheckDue } from './check-schedule.ts'

export interface AddDomainBody extends AccountOrder {
  /** In lower case, of the grammar, and allowed. */
  readonly domain: string
  /** Whether test servers may send from it at once; absent: no. */
  readonly isTestOnly?: boolean
  readonly selector: string
  readonly publicKey: string
  readonly sealedPrivateKey: string
}

export interface AddDomainReply {
  readonly kind: 'added'
  readonly domain: DomainState
}

const UNCHECKED = { verified: false, verifiedAtMs: null }

export const addDomain: CommandType<AddDomainBody, AddDomainReply | Refused> = {
  name: 'add-domain',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: ({ accountId, domain }, _states, { shard }) => [
    { read: 'fields', key: namesKey(shard, accountId), fields: [domainName(domain)] },
    // The key pairs of an earlier domain with that name, for its mail in flight.
    { read: 'hash', key: dkimKey(shard, accountId, domain) },
  ],
  decide(body, states, facts, context) {
    const refusal = refuseOrder(body, states, { facts, context })
    if (refusal !== null) return refusal
    const { shard, nowMs } = context
    const names = namesKey(shard, body.accountId)
    const known = facts.field(names, domainName(body.domain))
    if (known !== null) return refuse('domain_exists', { domainId: known })
    const domain = makeDomain(body, context.newId(), nowMs)
    const { domainId, accountId } = domain
    const { selector, publicKey, sealedPrivateKey } = body
    const place = { shard, accountId, domain: body.domain }
    return {
      kind: 'done',
      reply: { kind: 'added', domain },
      due: [body.isTestOnly ? nextCheckDue(domain, nowMs) : firstCheckDue(domainId, nowMs)],
      events: [{ ref: domainRef(domainId), event: { type: 'added', domain } }],
      ops: [
        { key: names, write: 'HSET', args: [domainName(body.domain), domainId] },
        { key: domainsKey(shard, body.accountId), write: 'ZADD', args: [String(msOf(domainId)), domainId] },
        ...(body.isTestOnly ? sendingOps(shard, domain) : []),
        ...keepPairOps(place, facts.hash(dkimKey(shard, accountId, body.domain)), {
          pair: { selector, sinceMs: domain.keySinceMs, publicKey, sealedPrivateKey },
          nowMs,
        }),
      ],
    }
  },
}

function makeDomain(body: AddDomainBody, domainId: string, nowMs: number): DomainState {
  const { accountId, domain, selector, publicKey } = body
  return {
    domainId,
    accountId,
    domain,
    createdAtMs: nowMs,
    verified: false,
    lastCheckedAtMs: null,
    failingSinceMs: null,
    unverifiedSinceMs: nowMs,
    warningBeganAtMs: null,
    selector,
    // Ids always rise, but clocks may not: no message of this domain has an id of an earlier time.
    keySinceMs: msOf(domainId),
    publicKey,
    pending: null,
    returnPath: UNCHECKED,
    dkim: UNCHECKED,
    ...(body.isTestOnly && { isTestOnly: true }),
    removedAtMs: null,
  }
}
