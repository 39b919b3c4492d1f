/** erasure - a tenant whose mail is erased in a `World`: orders, steps of the walk, and their results. */

import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { type EraseBody, erase } from '../../../src/actors/erasure/erase.ts'
import { type LookJob, type LookOutcome, lookOutcome, prepareLook } from '../../../src/actors/erasure/look.ts'
import { walkErasure } from '../../../src/actors/erasure/walk.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import type { ErasureState, ErasureWalk } from '../../../src/state/erasure.ts'
import { headKey, logKey, segmentsKey, statusKey } from '../../../src/state/keys.ts'
import { type Head, isErasedHead, unpackHead } from '../../../src/state/message/head.ts'
import { parseLogEntry } from '../../../src/state/message/log-entry.ts'
import { type RecipientState, statusField, unpackStatus } from '../../../src/state/message/status.ts'
import { unpackReceivedBlock } from '../../../src/state/received/block.ts'
import { ACCOUNT_KEY, hmacOf, makeItem, makeRecipient, makeTenant, type Tenant } from './tenant.ts'
import { World } from './turn.ts'

/** The start time of an opened world: the middle of a minute. */
export const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)
export const PSEUDONYM = 'erased-abcdefghijkl'

/** A world with a tenant. */
export function openWorld(nowMs = NOW_MS): { readonly world: World; readonly tenant: Tenant } {
  const world = new World(nowMs)
  return { world, tenant: makeTenant(world) }
}

/** A message to these addresses. */
export function mailTo(...addresses: string[]): ReturnType<typeof makeItem> {
  return makeItem({ recipients: addresses.map((one) => makeRecipient(one, 'to', `Name of ${one}`)) })
}

/** Ends the attempt at every recipient whose turn has come. */
export function deliverAll(world: World, outcome: Parameters<typeof reportOutcome>[0]): void {
  for (const due of world.deliveries().filter(({ lane }) => lane.startsWith('deliver'))) {
    const claim = world.claim<AttemptJob>(prepareAttempt, due)
    if (claim === null) continue
    const { address } = claim.job.recipient
    const report = { address, sizeBytes: 900, retryAfterMs: null, hmac: () => hmacOf(address) }
    world.end(attemptOutcome, claim, reportOutcome(outcome, report))
  }
}

/** Ends every pending check of a header, and continues. Returns the checked ones. */
export function lookAll(world: World, outcome: LookOutcome | null): LookJob[] {
  return world
    .deliveries()
    .filter(({ lane, atMs }) => lane.startsWith('look/') && atMs <= world.nowMs)
    .flatMap((due) => {
      const claim = world.claim<LookJob>(prepareLook, due)
      if (claim === null) return []
      world.end(lookOutcome, claim, outcome)
      world.fireTimers()
      return [claim.job]
    })
}

/** Holds the next step of every walk back. */
export function holdWalks(world: World, untilMs: number): void {
  for (const step of world.items.values()) if (step.item.startsWith('erase:')) Object.assign(step, { atMs: untilMs })
}

/** Carries out the next step of an erasure. Out: whether there was one. */
export function stepOnce(world: World): boolean {
  const due = [...world.items.values()].find(({ item }) => item.startsWith('erase:'))
  if (due === undefined) return false
  world.items.delete(`${due.lane} ${due.item}`)
  world.run(walkErasure, { item: due.item })
  return true
}

/** Carries erasures out. Returns the number of writes of each step, and the number of values in them. */
export function walkSteps(world: World): { readonly writes: number; readonly values: number }[] {
  const steps: { writes: number; values: number }[] = []
  for (let before = world.items.size; stepOnce(world); before = world.items.size) {
    const values = world.ops.reduce((sum, { args }) => sum + args.length, 0)
    steps.push({ writes: world.ops.length + Math.max(0, world.items.size - before), values })
  }
  return steps
}

export function makeErase({ accountId }: Tenant, address: string, changes: Partial<EraseBody> = {}): EraseBody {
  const domain = address.slice(address.indexOf('@') + 1)
  return {
    accountId,
    keyHash: ACCOUNT_KEY,
    hmac: hmacOf(address),
    pseudonym: PSEUDONYM,
    domain,
    mailbox: null,
    ...changes,
  }
}

/** Orders an erasure. Throws with the code if it is refused. Returns its id. */
export function order(world: World, tenant: Tenant, address: string, changes: Partial<EraseBody> = {}): string {
  const reply = world.run(erase, makeErase(tenant, address, changes))
  if (reply.kind !== 'erasure') throw new Error(`Erasure was refused: ${reply.code}`)
  return reply.erasure.erasureId
}

/** Orders one, and carries it out as far as timers do. Returns its state. */
export function eraseNow(
  world: World,
  tenant: Tenant,
  address: string,
  changes: Partial<EraseBody> = {},
): ErasureState {
  const erasureId = order(world, tenant, address, changes)
  world.fireTimers()
  return stateOf(world, erasureId)
}

export function stateOf(world: World, erasureId: string): ErasureState {
  return world.states.get(`erasure:${erasureId}`) as ErasureState
}

export function walkOf(world: World, erasureId: string): ErasureWalk | null {
  return (world.counters.get(`erasure:${erasureId}`) ?? null) as ErasureWalk | null
}

/** A message of a server as it is stored. */
export interface StoredMessage {
  readonly head: Head | null
  readonly isErased: boolean
  readonly recipients: readonly RecipientState[]
}

export function messageOf(world: World, serverId: string, messageId: string): StoredMessage {
  const segments = [...world.sorted(segmentsKey(world.shard, serverId))]
  const segment = segments.filter(([, ms]) => ms <= msOf(messageId)).at(-1)?.[0] ?? ''
  const logged = world.stream(logKey(world.shard, serverId, segment)).find(({ id }) => id === entryIdOf(messageId))
  const entry = logged === undefined ? null : parseLogEntry(logged)
  const short = shortId(messageId)
  const packed = world.hash(headKey(world.shard, serverId, segment)).get(short)
  const head = packed === undefined ? null : unpackHead(packed, entry?.recipients.length ?? 0)
  const rows = world.hash(statusKey(world.shard, serverId, segment))
  const recipients = (entry?.recipients ?? []).map((_, n) =>
    unpackStatus(rows.get(statusField(short, n)) ?? null, msOf(messageId)),
  )
  return { head, isErased: head !== null && isErasedHead(head), recipients }
}

/** Every text that the world holds: names of keys, fields, values, entries, states, rows of received mail in blocks. */
export function textsOf(world: World): string {
  const parts: string[] = []
  for (const [key, value] of world.keys) {
    parts.push(key)
    if (value.type === 'hash') for (const [field, text] of value.fields) parts.push(field, String(text))
    else
      parts.push(
        JSON.stringify(value, (_, one) =>
          one instanceof Map ? [...one] : one instanceof Uint8Array ? Buffer.from(one).toString('latin1') : one,
        ),
      )
  }
  for (const key of world.keyNames()) {
    if (!key.includes(':received-blocks:')) continue
    for (const block of world.sorted(key).keys())
      parts.push(JSON.stringify(unlessDamaged(() => unpackReceivedBlock(block))))
  }
  parts.push(JSON.stringify([...world.states]), JSON.stringify([...world.counters]))
  return parts.join('\n').toLowerCase()
}
