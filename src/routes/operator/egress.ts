/**
 * egress - GET and PUT /v1/operator/egress, GET /v1/operator/egress/explain
 *
 * Passwords of relays are sealed here: no command, no row and no log has one in the clear.
 *
 * Spec egress.document, egress.explain
 */

import { randomBytes } from 'node:crypto'
import { domainToASCII } from 'node:url'
import type { ApplyEgressBody, ApplyEgressReply } from '../../actors/operator/egress.ts'
import type { HandlerOf } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import { explainMail, type SiteOf } from '../../outbound/egress/explain.ts'
import type { EgressPlan, MailOf } from '../../outbound/egress/plan.ts'
import { windowNames } from '../../outbound/egress/units.ts'
import { RELAY_LIMITS } from '../../outbound/relay-limits.ts'
import { EGRESS_SHARD } from '../../state/keys.ts'
import { RingNotReady } from '../../state/ring/ring.ts'
import { relayPasswordOwner } from '../../state/ring/sealed-values.ts'
import { NONCE_BYTES, type SealingRing, sealSecret } from '../../state/ring/sealing.ts'
import { formatInstantOrNull } from '../../views/instant.ts'
import { formatEgress, readEgress, readEgressCounters, readRuledMail } from '../../views/operator/egress.ts'
import { findMessage } from '../../views/operator/message.ts'
import { giveOrder } from '../answer.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'
import { makeEgressDocument } from './egress-document.ts'

/** Dependencies of the routes of sources, pools and rules. */
export interface EgressDeps extends OperatorDeps {
  readonly ring: SealingRing
  /** Null until the document was read. */
  readonly egressPlan: () => EgressPlan | null
  /** The mail servers of a domain; null: it has none, or the DNS did not answer. */
  readonly mailRoute: (domain: string) => Promise<SiteOf | null>
}

/** GET /v1/operator/egress */
export function makeReadEgress({ read, nowMs }: EgressDeps): HandlerOf<'readEgress'> {
  return asOperator(read, async () => {
    const seen = await readEgress(read, nowMs())
    return seen === null
      ? refusalReply('unavailable')
      : { status: 200, json: formatEgress(withNames(seen.stored), seen.rests) }
  })
}

/** PUT /v1/operator/egress */
export function makeApplyEgress(deps: EgressDeps): HandlerOf<'applyEgress'> {
  return asOperator(deps.read, async ({ body }, by) => {
    const document = makeEgressDocument(body)
    if ('issues' in document) return refusalReply('invalid_request', { issues: document.issues })
    const passwords = sealPasswords(deps.ring, body.sources)
    if (passwords === null) return refusalReply('unavailable')
    const order: ApplyEgressBody = { document, passwords, by }
    const { reply, answer } = await giveOrder<ApplyEgressReply>(deps, EGRESS_SHARD, {
      name: 'apply-egress',
      body: order,
    })
    if (answer !== undefined) return answer
    const seen = await readEgress(deps.read, deps.nowMs())
    return { status: 200, json: formatEgress(reply, seen?.rests ?? []) }
  })
}

function withNames<Stored extends { readonly passwords: ReadonlyMap<string, string> }>(stored: Stored) {
  return { ...stored, passwords: stored.passwords.keys() }
}

/** The passwords that the order names, sealed; null if the keys cannot be used now. */
function sealPasswords(
  ring: SealingRing,
  sources: readonly { readonly name: string; readonly password?: string | null }[],
): ApplyEgressBody['passwords'] | null {
  try {
    const sealed: [source: string, password: string | null][] = []
    for (const { name, password } of sources) {
      if (password === undefined) continue
      const secret = Buffer.from(password ?? '')
      const input = { secret, owner: relayPasswordOwner(name), nonce: randomBytes(NONCE_BYTES) }
      sealed.push([name, password === null ? null : sealSecret(ring, input).toString('base64')])
    }
    return sealed
  } catch (error) {
    if (error instanceof RingNotReady) return null
    throw error
  }
}

/** GET /v1/operator/egress/explain */
export function makeExplainEgress(deps: EgressDeps): HandlerOf<'explainEgress'> {
  return asOperator(deps.read, async ({ query }) => {
    const mail = await mailOf(deps, query)
    if (!('domain' in mail)) return mail
    const plan = deps.egressPlan()
    const seen = await readEgress(deps.read, deps.nowMs())
    if (plan === null || seen === null) return refusalReply('unavailable')
    const route = await deps.mailRoute(mail.domain)
    const nowMs = deps.nowMs()
    const sources = [...plan.sources.keys()]
    const site = route?.site ?? 'relay'
    const counters = await readEgressCounters(deps.read, { sources, site, windows: windowNames(nowMs) })
    if (counters === null) return refusalReply('unavailable')
    const { untilMs, ...explained } = explainMail({
      plan,
      mail,
      route,
      relayLimits: RELAY_LIMITS,
      nowMs,
      factsOf: (source, at) => ({
        usedHour: counters.used('hour', source, at),
        usedDay: counters.used('day', source, at),
        rest: seen.rests.find((one) => one.source === source && one.site === at) ?? null,
        today: {
          delivered: counters.attempts('delivered', source, at),
          deferred: counters.attempts('deferred', source, at),
          bounced: counters.attempts('bounced', source, at),
        },
      }),
    })
    const rows = explained.sources.map(({ untilMs, ...row }) => ({ ...row, until: formatInstantOrNull(untilMs) }))
    const json = { domain: mail.domain, site: route?.site ?? null, ...explained, until: formatInstantOrNull(untilMs) }
    return { status: 200, json: { ...json, sources: rows } }
  })
}

/** The mail that the query is about, or the refusal. */
async function mailOf({ read, nowMs }: EgressDeps, query: Readonly<Record<string, string>>): Promise<MailOf | Answer> {
  const { messageId, domain, recipientIndex = '0' } = query
  if ((messageId === undefined) === (domain === undefined))
    return refusalReply('invalid_request', {
      issues: [{ path: 'messageId', message: 'Must be given, or else domain, and not both' }],
    })
  if (messageId !== undefined) {
    const place = await findMessage(read, messageId)
    const mail =
      typeof place === 'string'
        ? place
        : await readRuledMail(read, place, { index: Number(recipientIndex), nowMs: nowMs() })
    return typeof mail === 'string' ? refusalReply(mail) : mail
  }
  const id = (text: string | undefined) => text?.toLowerCase() ?? null
  const kind = (query.streamKind ?? null) as MailOf['streamKind']
  const given = { accountId: id(query.accountId), serverId: id(query.serverId), streamId: id(query.streamId) }
  return { ...given, streamKind: kind, domain: domainToASCII((domain ?? '').toLowerCase()) }
}
