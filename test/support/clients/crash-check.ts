/** crash-check - the checks that end every crash test: store and ledger agree, and no answer was false. */
import type { Test } from 'tap'
import type { FirstRun } from '../../../src/service/first-start.ts'
import type { Ledger } from './ledger.ts'
import { type Found, SETTLED, settle } from './settle.ts'

export interface CheckOptions {
  readonly socketPath: string
  readonly firstRun: FirstRun
  readonly ledger: Ledger
  /** Messages that the store held before this load. */
  readonly before?: number
  /** Whether the messages went through the live server. */
  readonly live?: boolean
}

/**
 * Waits until the store is calm and compares it with the clients' answers: nothing lost, duplicated or miscounted, and
 * nothing accepted was refused.
 */
export async function checkSettled(t: Test, options: CheckOptions): Promise<Found> {
  const { socketPath, firstRun, ledger, before = 0, live = false } = options
  const { account, liveServer, testServer } = firstRun
  const { serverId } = live ? liveServer : testServer
  const found = await settle(socketPath, { serverId, accountId: account.accountId, ledger, live })
  t.comment(JSON.stringify({ found, statuses: Object.fromEntries(ledger.statuses), cuts: cutsOf(ledger) }))
  t.match(found, { ...SETTLED, abandoned: 0 })
  t.equal(found.logged, before + found.told, 'every message is in the log once')
  t.equal(found.counted, found.logged, 'and was counted once')
  t.same(ledger.falselyRefused, [], 'no message was refused and yet made')
  const unsaid = ledger.refusals.filter(({ status, headers }) => status === 503 && headers['retry-after'] === undefined)
  t.equal(unsaid.length, 0, 'each 503 says when to come back')
  return found
}

/** Refusals of a load that are not 503, as texts. */
export function oddRefusals(ledger: Ledger): string[] {
  return ledger.refusals.filter(({ status }) => status !== 503).map(({ status, body }) => `${status} ${body}`)
}

function cutsOf(ledger: Ledger): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { code, connected, reused } of ledger.cuts) {
    const name = `${code}${connected ? ' connected' : ''}${reused ? ' reused' : ''}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}
