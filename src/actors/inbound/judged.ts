/**
 * judged - repeats the authentication of a received message that the DNS left incomplete.
 *
 * States of an item: due -> looked; while something is missing and a round is left, the next one is due. A round
 * without a result (the content store was unreachable, five claims without an outcome) counts too. After the last one,
 * or once nothing is missing, IP address and HELO name are removed from the head row. Guarantees: earlier results are
 * kept; no second event; an expired message, or expired content, is not restored.
 *
 * Keys: `received-state:<server>:<segment>`, `received-head:<server>:<day>:<n>`
 *
 * Spec inbound.authentication.rounds
 */

import type { CommandType, Decision, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { mergeRounds, nextRoundAtMs } from '../../mail/authenticate/rounds.ts'
import { accountOfJudgeLane, judgeDue, readJudgeItem } from '../../state/received/judge-item.ts'
import type { CheckResult, ParseJob } from './parse-job.ts'
import { rowFacts, rowsIn, rowWrites } from './rows.ts'

/** The result of a round; null if nothing could be checked. */
export type JudgeOutcome = { readonly check: CheckResult | null }

export const prepareJudge: CommandType<PrepareBody, ParseJob | null> = {
  name: 'prepare judge',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => rowFacts(shard, readJudgeItem(item).place),
  decide({ lane, item }, _states, facts, { shard }) {
    const { place } = readJudgeItem(item)
    const { standing, head } = rowsIn(facts, shard, place)
    if (standing === null || head === null || head.session === null) return { kind: 'done', reply: null }
    const { sizeBytes } = standing
    return { kind: 'done', reply: { accountId: accountOfJudgeLane(lane), ...place, sizeBytes, head } }
  },
}

export const judgeOutcome: CommandType<OutcomeBody<JudgeOutcome>, null> = {
  name: 'judge outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => rowFacts(shard, readJudgeItem(item).place),
  decide({ lane, item, outcome }, _states, facts, { shard }): Decision<null> {
    const done = [{ lane, item }]
    const { place, round, firstAtMs } = readJudgeItem(item)
    const { standing, head } = rowsIn(facts, shard, place)
    if (standing === null || head === null || head.session === null) return { kind: 'done', reply: null, done }
    const check = outcome?.check ?? null
    const authentication =
      check === null ? standing.authentication : mergeRounds(standing.authentication, check.authentication)
    const checkedAtMs = check?.checkedAtMs ?? standing.checkedAtMs
    const atMs = nextRoundAtMs(authentication, { firstAtMs, rounds: round })
    const ops = rowWrites(shard, place, {
      standing: { ...standing, authentication, checkedAtMs },
      head: atMs === null ? { ...head, session: null } : head,
    })
    const next = { place, round: round + 1, firstAtMs }
    const due = atMs === null ? [] : [judgeDue(accountOfJudgeLane(lane), { ...next, atMs })]
    return { kind: 'done', reply: null, done, ops, due }
  },
}
