/**
 * domains - POST, GET, DELETE /v1/domains and POST /v1/domains/{id}/verify, /rotate-dkim, /test-use
 *
 * A check queries the DNS here, within 8 s, and then has its result recorded, because an actor never waits.
 *
 * Spec domain.add, domain.refused, domain.read, domain.list, domain.verify
 */

import { randomBytes } from 'node:crypto'
import { parse } from 'tldts'
import { homeShard } from '../../../cluster/id.ts'
import { DOMAINS_REFUSED } from '../../../schemas/domain.ts'
import type { AddDomainReply } from '../../actors/domain/add-domain.ts'
import type { RecordCheckReply } from '../../actors/domain/domain-check.ts'
import type { RotateDkimReply } from '../../actors/domain/rotate-dkim.ts'
import type { UseInTestsReply } from '../../actors/domain/use-in-tests.ts'
import type { CheckDomainJob, DomainFound } from '../../dns/check-domain.ts'
import type { EdgeRequest, HandlerOf } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import { formatKeyOwner, makeDkimKeyPair, makeSelector } from '../../mail/compose/dkim-key.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { AccountState } from '../../state/account.ts'
import type { DomainState } from '../../state/domain.ts'
import { NONCE_BYTES, type SealingRing, sealSecret } from '../../state/ring/sealing.ts'
import { formatDomain, listDomains, makeDomainRecords, type RecordNames, readDomain } from '../../views/domain.ts'
import type { AccountKey, Reader } from '../../views/key.ts'
import { giveOrder, type OrderDeps, parsePage } from '../answer.ts'

/** Random bytes in a selector. */
const SELECTOR_BYTES = 2

/** Dependencies of the routes of sending domains. */
export interface DomainDeps extends OrderDeps {
  readonly read: Reader
  readonly serviceDomain: string
  readonly ring: SealingRing
  readonly secrets: Pick<Secrets, 'tokenKey'>
  readonly check: (job: CheckDomainJob) => Promise<DomainFound>
}

/** The handlers of sending domains. */
export function domainHandlers(deps: DomainDeps) {
  return {
    listDomains: makeListDomains(deps),
    addDomain: makeAddDomain(deps),
    readDomain: makeReadDomain(deps),
    deleteDomain: makeRemoveDomain(deps),
    verifyDomain: makeVerifyDomain(deps),
    rotateDkim: makeRotateDkim(deps),
    useDomainInTests: makeUseDomainInTests(deps),
  }
}

/** POST /v1/domains. Spec domain.add */
function makeAddDomain(deps: DomainDeps): HandlerOf<'addDomain'> {
  return async ({ key, body }) => {
    const domain = body.domain.toLowerCase()
    if (isRefused(domain, deps.serviceDomain)) {
      const seen = await readDomain(deps.read, key, '')
      if (typeof seen === 'string') return refusalReply(seen)
      return isWritable(seen.account)
        ? refusalReply('domain_not_allowed', { domain })
        : refusalReply('account_not_active')
    }
    return orderAnswered(deps, key, {
      name: 'add-domain',
      body: { domain, isTestOnly: body.testOnly, ...(await makeSealedPair(deps, key, domain)) },
      answer: ({ domain: added }: AddDomainReply) => answerDomain(deps, 201, added),
    })
  }
}

/** GET /v1/domains. Spec domain.list */
function makeListDomains(deps: DomainDeps): HandlerOf<'listDomains'> {
  return async ({ key, query }) => {
    const seen = await listDomains(deps.read, key, parsePage(query))
    if (typeof seen === 'string') return refusalReply(seen)
    const domains = seen.domains.map((state) => formatDomain(state, namesOf(deps)))
    return { status: 200, json: { domains, next: seen.next } }
  }
}

/** GET /v1/domains/{id}. Spec domain.read */
function makeReadDomain(deps: DomainDeps): HandlerOf<'readDomain'> {
  return async ({ key, params }) => {
    const seen = await readDomain(deps.read, key, params.id ?? '')
    if (typeof seen === 'string') return refusalReply(seen)
    return seen.domain === null ? refusalReply('not_found') : answerDomain(deps, 200, seen.domain)
  }
}

/** DELETE /v1/domains/{id}. Spec domain.remove */
function makeRemoveDomain(deps: DomainDeps): HandlerOf<'deleteDomain'> {
  return (request) =>
    onDomain(deps, request, (owner, { domainId }) =>
      orderAnswered(deps, owner, { name: 'remove-domain', body: { domainId }, answer: () => ({ status: 204 }) }),
    )
}

/** POST /v1/domains/{id}/verify. Spec domain.verify */
function makeVerifyDomain(deps: DomainDeps): HandlerOf<'verifyDomain'> {
  return (request) =>
    onDomain(deps, request, async (owner, domain) => {
      const { instead, ...check } = await deps.check(makeDomainRecords(domain, deps.serviceDomain))
      const answer = (reply: RecordCheckReply) => ({
        status: 200,
        json: { ...formatDomain(reply.domain, namesOf(deps)), check: { ...check, found: instead } },
      })
      const body = { domainId: domain.domainId, check: { ...check, selector: domain.selector } }
      return orderAnswered(deps, owner, { name: 'record-check', body, answer })
    })
}

/** POST /v1/domains/{id}/rotate-dkim. Spec domain.rotate */
function makeRotateDkim(deps: DomainDeps): HandlerOf<'rotateDkim'> {
  return (request) =>
    onDomain(deps, request, async (owner, state) => {
      if (state.pending !== null) return answerDomain(deps, 200, state)
      const { domainId, domain } = state
      return orderAnswered(deps, owner, {
        name: 'rotate-dkim',
        body: { domainId, ...(await makeSealedPair(deps, owner, domain)) },
        answer: ({ domain: rotating }: RotateDkimReply) => answerDomain(deps, 200, rotating),
      })
    })
}

/** POST /v1/domains/{id}/test-use. Spec domain.test-use */
function makeUseDomainInTests(deps: DomainDeps): HandlerOf<'useDomainInTests'> {
  return (request) =>
    onDomain(deps, request, (owner, { domainId }) =>
      orderAnswered(deps, owner, {
        name: 'use-domain-in-tests',
        body: { domainId },
        answer: ({ domain }: UseInTestsReply) => answerDomain(deps, 200, domain),
      }),
    )
}

/** A new key pair with its selector, the private key sealed. */
async function makeSealedPair({ nowMs, ring }: DomainDeps, { accountId }: AccountKey, domain: string) {
  const { privateKey, publicKey } = await makeDkimKeyPair()
  const selector = makeSelector(nowMs(), randomBytes(SELECTOR_BYTES))
  const owner = formatKeyOwner({ accountId, domain, selector })
  const sealed = sealSecret(ring, { secret: privateKey, owner, nonce: randomBytes(NONCE_BYTES) })
  return { selector, publicKey, sealedPrivateKey: sealed.toString('base64') }
}

/** Finds the domain of the path for a route that changes it, or refuses in the contract's order. */
async function onDomain(
  deps: DomainDeps,
  { key, params }: EdgeRequest<AccountKey>,
  act: (owner: AccountKey, domain: DomainState) => Promise<Answer>,
): Promise<Answer> {
  const seen = await readDomain(deps.read, key, params.id ?? '')
  if (typeof seen === 'string') return refusalReply(seen)
  if (!isWritable(seen.account)) return refusalReply('account_not_active')
  return seen.domain === null ? refusalReply('not_found') : act(key, seen.domain)
}

interface Answered<Reply> {
  readonly name: string
  readonly body: object
  answer(reply: Reply): Answer
}

/** Asks the account's shard; the turn checks key and state again. */
async function orderAnswered<Reply extends { readonly kind: string }>(
  deps: DomainDeps,
  owner: AccountKey,
  { name, body, answer }: Answered<Reply>,
): Promise<Answer> {
  const accountId = owner.accountId
  const order = { name, body: { accountId, keyHash: owner.hash, ...body } }
  const replied = await giveOrder<Reply>(deps, homeShard(accountId), order)
  return replied.answer ?? answer(replied.reply)
}

function answerDomain(deps: DomainDeps, status: number, state: DomainState): Answer {
  return { status, json: formatDomain(state, namesOf(deps)) }
}

function namesOf({ serviceDomain, secrets }: DomainDeps): RecordNames {
  return { serviceDomain, tokenKey: secrets.tokenKey }
}

/** A closed account is read only. */
function isWritable({ status }: AccountState): boolean {
  return status !== 'closed'
}

// Spec domain.refused
function isRefused(domain: string, serviceDomain: string): boolean {
  if (domain === serviceDomain || domain.endsWith(`.${serviceDomain}`)) return true
  const { publicSuffix } = parse(domain, { allowPrivateDomains: false, validateHostname: false })
  return DOMAINS_REFUSED.some((refused) =>
    refused.endsWith('.*') ? domain === `${refused.slice(0, -2)}.${publicSuffix}` : domain === refused,
  )
}
