/**
 * egress - the document of sources, pools and rules, replaced as a whole
 *
 * A source whose URL is the same keeps its stored password if the order names none. The passwords of the order are
 * sealed already.
 *
 * Key: `egress:conf`, on shard 0
 *
 * Spec egress.document, operator.audit
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'
import {
  EGRESS_TOPIC,
  type EgressDocument,
  egressFact,
  passwordField,
  type StoredEgress,
  unpackEgress,
} from '../../state/egress.ts'
import { egressKey } from '../../state/keys.ts'

export interface ApplyEgressBody {
  readonly document: EgressDocument
  /** Source and its sealed password; null: it has none any more. Sources that are not named keep theirs. */
  readonly passwords: readonly (readonly [source: string, sealed: string | null])[]
  readonly by: OperatorAct
}

export interface ApplyEgressReply {
  readonly kind: 'applied'
  readonly version: number
  readonly changedAtMs: number
  readonly document: EgressDocument
  /** Sources with a password. */
  readonly passwords: readonly string[]
}

export const applyEgress: CommandType<ApplyEgressBody, ApplyEgressReply> = {
  name: 'apply-egress',
  entities: () => [],
  counters: () => [],
  facts: () => [egressFact()],
  decide({ document, passwords, by }, _states, facts, context) {
    const before = unpackEgress(facts.hash(egressKey()))
    const version = before.version + 1
    const kept = keptPasswords(before, document, new Map(passwords))
    const gone = [...before.passwords.keys()].filter((source) => !kept.has(source)).map(passwordField)
    const fields = ['document', JSON.stringify(document), 'version', String(version), 'changed', String(context.nowMs)]
    for (const [source, sealed] of kept) fields.push(passwordField(source), sealed)
    const ops: Op[] = [{ key: egressKey(), write: 'HSET', args: fields }]
    if (gone.length > 0) ops.push({ key: egressKey(), write: 'HDEL', args: gone })
    const subject = {
      targets: {},
      before: summaryOf(before.version, before.document),
      after: summaryOf(version, document),
    }
    return {
      kind: 'done',
      reply: { kind: 'applied', version, changedAtMs: context.nowMs, document, passwords: [...kept.keys()] },
      ops: [...ops, ...auditOps(context, by, subject)],
      signals: [{ topic: EGRESS_TOPIC, text: '' }],
    }
  },
}

/** The sealed passwords after the order. */
function keptPasswords(
  { document: before, passwords }: StoredEgress,
  { sources }: EgressDocument,
  ordered: ReadonlyMap<string, string | null>,
): Map<string, string> {
  const kept = new Map<string, string>()
  for (const { name, relay } of sources) {
    if (relay === null) continue
    const isSame = before.sources.some((one) => one.name === name && one.relay === relay)
    const sealed = ordered.has(name) ? ordered.get(name) : isSame ? passwords.get(name) : null
    if (sealed) kept.set(name, sealed)
  }
  return kept
}

/** The part of a document that the audit log shows: no URL, no address. */
function summaryOf(version: number, { sources, pools, rules }: EgressDocument) {
  return {
    version,
    sources: sources.map(({ name }) => name),
    pools: pools.map(({ name }) => name),
    rules: rules.length,
  }
}
