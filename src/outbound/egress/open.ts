/**
 * open - the sources of a process: the stored document, read now and continuously, and what attempts need of it
 *
 * The document is read at the start, on the signal of a change, and every few seconds, because signals are lost while
 * the connection is down. Until it was read once, nothing is sent: mail must not leave by the wrong way.
 *
 * Keys: `egress:conf`, `egress-rests`
 *
 * Spec egress.document, egress.rest
 */

import type { Log } from '../../process/log.ts'
import { EGRESS_TOPIC, type StoredEgress, type StoredRest, unpackEgress, unpackRest } from '../../state/egress.ts'
import { EGRESS_SHARD, egressKey, egressRestsKey } from '../../state/keys.ts'
import { RingNotReady } from '../../state/ring/ring.ts'
import { relayPasswordOwner } from '../../state/ring/sealed-values.ts'
import { openSecret, type SealingRing } from '../../state/ring/sealing.ts'
import type { ReadKeys } from '../../views/read-keys.ts'
import { canBind } from './can-bind.ts'
import type { FailoverDeps } from './failover.ts'
import { type EgressPlan, makePlan, type Source } from './plan.ts'
import { Rests } from './rests.ts'
import { type ResultSink, Tally } from './tally.ts'
import { type UnitCounts, Units } from './units.ts'

const REFRESH_MS = 5000
/** Addresses of a machine change rarely. */
const ADDRESSES_EVERY_MS = 60_000

/** The writes of a process about its sources. They reject if the store does not answer. */
export interface EgressStore extends UnitCounts, ResultSink {
  rest(source: string, site: string, rest: StoredRest, nowMs: number): Promise<void>
  wake(fields: readonly string[]): Promise<void>
}

export interface EgressDoorDeps {
  readonly readKeys: ReadKeys
  readonly hear: (topic: string, heard: (text: string) => void) => Promise<() => void>
  readonly store: EgressStore
  readonly ring: SealingRing
  readonly hasRelay: boolean
  readonly log: Pick<Log, 'error' | 'warn' | 'info'>
  /** The store's time. */
  readonly nowMs: () => number
  readonly sharers: () => number
  readonly random: () => number
  /** Counts an attempt of a source, for the metrics. */
  readonly counted: (source: string, result: string) => void
}

export interface EgressDoor {
  /** Null until the document was read. */
  plan(): EgressPlan | null
  readonly failover: FailoverDeps
  /** Whether this machine has the address of a source. */
  isHere(source: Source): boolean
  refresh(): Promise<void>
  /** The addresses of the sources. */
  addresses(): readonly string[]
  /** Ends the rests of all sources at a site. */
  wake(site: string): void
  /** Gives unused units back. */
  close(): Promise<void>
}

/** Opens it. */
export async function openEgress(deps: EgressDoorDeps): Promise<EgressDoor> {
  const { readKeys, store, nowMs, sharers, random, log } = deps
  const rests = new Rests()
  const units = new Units({ counts: store, nowMs, sharers })
  const tally = new Tally({ sink: store, nowMs, counted: deps.counted })
  let plan: EgressPlan | null = null
  let known = ''
  let elsewhere: ReadonlySet<string> = new Set()
  let lookedAtMs = 0

  async function refresh(): Promise<void> {
    const found = await readKeys('hgetall', [
      { shard: EGRESS_SHARD, key: egressKey() },
      { shard: EGRESS_SHARD, key: egressRestsKey() },
    ])
    const [fields, rows] = found ?? []
    if (fields === undefined || rows === undefined) return
    rests.learn(storedRests(rows), nowMs())
    const text = JSON.stringify(fields)
    if (text !== known || plan === null) {
      const next = planOf(deps, unpackEgress(new Map(Object.entries(fields))))
      // The keys that open passwords are not confirmed: the plan that is known stays.
      if (next === null) return
      if (known !== '') log.info({ version: fields.version ?? '0' }, 'Sources of outgoing mail have changed')
      known = text
      elsewhere = await missingAddresses(next)
      plan = next
      tellMissing(log, elsewhere)
    } else if (nowMs() - lookedAtMs > ADDRESSES_EVERY_MS) elsewhere = await missingAddresses(plan)
    else return
    lookedAtMs = nowMs()
  }

  const leave = await deps.hear(EGRESS_TOPIC, () => void refresh())
  await refresh()
  const timer = setInterval(() => {
    void refresh()
    void tally.flush()
  }, REFRESH_MS).unref()
  // The other processes read a rest within seconds; one that is lost costs each of them a blocked attempt.
  const quietly = (write: Promise<void>) => void write.catch(() => undefined)
  return {
    plan: () => plan,
    failover: {
      rests,
      units,
      nowMs,
      random,
      rested(source, site, rest) {
        if (rest === null) return quietly(store.wake([`${source}|${site}`]))
        log.warn({ source, site, until: new Date(rest.untilMs).toISOString(), why: rest.why }, 'A source rests')
        quietly(store.rest(source, site, rest, nowMs()))
      },
      noted(source, site, outcome) {
        if (plan?.hasDocument) tally.note(source, site, outcome)
      },
    },
    isHere: ({ name }) => !elsewhere.has(name),
    refresh,
    addresses: () => [...(plan?.sources.values() ?? [])].flatMap(({ address }) => address ?? []),
    wake: (site) => quietly(store.wake(rests.wake(site))),
    async close() {
      clearInterval(timer)
      leave()
      await Promise.all([units.close(), tally.flush()])
    },
  }
}

function planOf({ ring, hasRelay, log }: EgressDoorDeps, { document, passwords }: StoredEgress): EgressPlan | null {
  const passwordOf = (source: string): string | null | undefined => {
    const sealed = passwords.get(source)
    if (sealed === undefined) return null
    const opened = openSecret(ring, { sealed: Buffer.from(sealed, 'base64'), owner: relayPasswordOwner(source) })
    if (opened !== null) return opened.toString()
    log.error({ source }, 'The stored password of the relay of a source cannot be opened: apply the document again')
    return undefined
  }
  try {
    return makePlan({ document, passwordOf, hasRelay })
  } catch (error) {
    if (error instanceof RingNotReady) return null
    throw error
  }
}

function storedRests(rows: Readonly<Record<string, string>>): Map<string, StoredRest> {
  const rests = new Map<string, StoredRest>()
  for (const [field, text] of Object.entries(rows)) {
    const rest = unpackRest(text)
    if (rest !== null) rests.set(field, rest)
  }
  return rests
}

/** The sources whose address this machine does not have. */
async function missingAddresses({ sources }: EgressPlan): Promise<ReadonlySet<string>> {
  const looked = await Promise.all(
    [...sources.values()].map(async ({ name, address }) => ({
      name,
      isHere: address === null || (await canBind(address)),
    })),
  )
  return new Set(looked.filter(({ isHere }) => !isHere).map(({ name }) => name))
}

function tellMissing(log: EgressDoorDeps['log'], elsewhere: ReadonlySet<string>): void {
  if (elsewhere.size > 0)
    log.warn({ sources: [...elsewhere] }, 'This machine lacks the address of sources: their mail takes other sources')
}
