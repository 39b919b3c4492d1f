/**
 * move-slot - the shard of a slot goes from one primary of a Redis Cluster to another: its keys are copied, then the
 * slot changes its holder at once, then the source removes its keys
 *
 * States: copied ahead (the owner continues; `key-watch.ts` records its writes, which are copied again), fenced
 * (`move-fence.ts`: no process writes, all reads are at the source), copied (the target and its replicas have all
 * keys, `meta` with the fence last), switched (the target has the slot; the source removes its keys once it learns of
 * it), freed (any process that takes the shard continues with it).
 *
 * Guarantees: at every moment the node that has the slot has all keys of the shard, and so has the replica that takes
 * its place; keys elsewhere are a copy, marked by the key `copy` or by the fence in its `meta`, and are ignored. So an
 * interrupted move, even after the loss of a node, is resumed from the start, or undone by moving the shard to its
 * holder. The claim to the slot is then made newer than that of a target that was lost before any node learned of its
 * claim. The fence ends only when no other node claims the slot.
 */
import { pauseBy, type Waits } from '../clock.ts'
import { copyKey, inboxKey, metaKey } from '../keyspace.ts'
import { asking } from './asking.ts'
import { clearOthers, type Follower, remove } from './clear-slot.ts'
import { type CopyWay, copyKeys, type MoveEnd, readKeys } from './copy-keys.ts'
import type { KeyWatch } from './key-watch.ts'
import { type FenceHolder, freeFence, noteUncleared, parseMove, readHolder, takeFence } from './move-fence.ts'
import { raiseEpoch } from './raise-epoch.ts'
import { hasSlot, parseNodes } from './slot-map.ts'
import { switchSlot } from './switch-slot.ts'

/** Rounds of copying while the owner writes, and the small rest left to the fence. */
const AHEAD_ROUNDS_MAX = 8
const FEW_KEYS = 100
/** Rounds of comparing both sides; unfenced keys may change all the time, and are volatile. */
const ROUNDS_MAX = 8
/** A replica that is slow is not waited for if another one has it all. */
const ALL_REPLICAS_MS = 2_000
const REPLICA_MS_MAX = 10_000
/** Nodes learn of a switch within milliseconds; late ones by gossip within some seconds. */
const AGREED_MS_MAX = 10_000
const AGREED_STEP_MS = 20

/** In order; after each step a test kills something. */
export const MOVE_STEPS = [
  'ahead',
  'fenced',
  'marked',
  'begun',
  'copied',
  'meta',
  'kept',
  'switched',
  'agreed',
  'freed',
] as const
export type MoveStep = (typeof MOVE_STEPS)[number]

export interface SlotMove extends CopyWay {
  readonly shard: number
  readonly slot: number
  /** All primaries that answer, source and target among them. */
  readonly primaries: readonly MoveEnd[]
  /** All replicas that answer. */
  readonly replicas: readonly Follower[]
  /** Ids of all nodes, including those that do not answer. */
  readonly ids: ReadonlySet<string>
  /** Within this time every node learns of every other, ms. */
  readonly heardMs: number
  readonly clock: Waits
  /** Used only by this order, for tokens. */
  readonly nonce: string
  /** Whether nothing counts before a replica has it. */
  readonly isReplicated: boolean
  /** Watches which keys of the shard are written to at the source; null if unknown. */
  watch?(): Promise<KeyWatch | null>
  /** Called after each completed step. */
  at?(step: MoveStep): void | Promise<void>
}

/** How many keys there are, and how many have been copied. */
export type MoveProgress = (moved: number, keys: number) => void

/** Moves it. Returns the number of copied keys. Throws Error with a sentence; the same move then resumes it. */
export async function moveSlot(move: SlotMove, progress: MoveProgress): Promise<number> {
  const isGoneOnWith = parseMove((await readHolder(move.source.client, move.shard)).owner) !== null
  // A lost target may have claimed the slot without the other nodes learning of it.
  if (isGoneOnWith) await raiseEpoch(move.target, move.primaries, move)
  // Fenced keys are not written to: they are copied as they are.
  const watch = isGoneOnWith ? null : ((await move.watch?.()) ?? null)
  try {
    if (watch !== null) await copyAhead(move, watch, progress)
    return await moveFenced(move, watch, progress)
  } finally {
    await watch?.close()
  }
}

/** The shard is fenced for no longer than this takes. */
async function moveFenced(move: SlotMove, watch: KeyWatch | null, progress: MoveProgress): Promise<number> {
  const { shard, slot, source, target, isReplicated } = move
  const step = async (name: MoveStep): Promise<void> => {
    await move.at?.(name)
    move.mustHold()
  }
  const token = await fence(move)
  await reachReplicas(source, isReplicated)
  await step('fenced')
  await mark(target, { shard, slot, holder: source.id })
  await step('marked')
  let hasBegun = false
  const keys = await copyAll(move, watch, async (moved, all) => {
    progress(moved, all)
    if (moved === 0 || hasBegun) return
    hasBegun = true
    await step('begun')
  })
  await step('copied')
  await copyKeys(move, [Buffer.from(metaKey(shard))])
  await step('meta')
  await reachReplicas(target, isReplicated)
  await step('kept')
  if ((await readHolder(source.client, shard)).token !== token)
    throw new Error(`Another command has taken over shard ${shard}`)
  await mustSeeAll(move)
  // The source removes its keys in one step, and is silent in the meantime; large values are freed in the background.
  await source.client.config('SET', 'lazyfree-lazy-server-del', 'yes').catch(() => undefined)
  move.mustHold()
  // This gives it a newer epoch. If it is lost, no node votes for its replica that does not know of the slot.
  await switchSlot(target, slot)
  await step('switched')
  await endMove(move)
  return keys
}

/**
 * Ends an interrupted move at `target`, the holder of the shard: after a switch, or to undo it. A lost target may have
 * claimed the slot without the other nodes learning of it.
 */
export async function endHere(move: Omit<SlotMove, 'source'>): Promise<void> {
  if (parseMove((await readHolder(move.target.client, move.shard)).owner) !== null)
    await raiseEpoch(move.target, move.primaries, move)
  await endMove(move)
}

/** Ends the fence of a shard at `target`, which has it. Copies elsewhere are removed first. */
async function endMove(move: Omit<SlotMove, 'source'>): Promise<void> {
  const { shard, target, isReplicated } = move
  await mustAgree(move, true)
  await move.at?.('agreed')
  const found = await readHolder(target.client, shard)
  const source = parseMove(found.owner)?.source
  const sources = [...found.uncleared, ...(source === undefined ? [] : [source])].filter((id) => id !== target.id)
  const uncleared = [...new Set(await clearOthers({ ...move, holder: target }, sources))]
  // The successor of the source, elected while its keys were removed, may have the slot again.
  await mustAgree(move)
  move.mustHold()
  const { owner, token } = await readHolder(target.client, shard)
  if (parseMove(owner) === null) return noteUncleared(target.client, shard, uncleared)
  if (!(await freeFence(target.client, shard, { token, uncleared })))
    throw new Error(`Another command has taken over shard ${shard}`)
  await reachReplicas(target, isReplicated)
  await move.at?.('freed')
}

/** Takes the shard from its owner, or resumes an interrupted move. Returns the token. */
async function fence({ shard, source, target, nonce }: SlotMove): Promise<string> {
  const { token: saw }: FenceHolder = await readHolder(source.client, shard)
  const token = await takeFence(source.client, shard, { saw, nonce, ends: { source: source.id, target: target.id } })
  if (token === null) throw new Error(`Another process has just claimed shard ${shard}: try again`)
  return token
}

/** Keys written from now on are a copy, also for a successor of the target. */
async function mark(
  { client, id }: MoveEnd,
  { shard, slot, holder }: { shard: number; slot: number; holder: string },
): Promise<void> {
  await client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', holder)
  await asking(client, [['SET', copyKey(shard), id]])
}

/**
 * Copies all but `meta` while the owner continues, and the keys written in the meantime again, until few are left.
 */
async function copyAhead(move: SlotMove, watch: KeyWatch, progress: MoveProgress): Promise<void> {
  const { shard, slot, source, target } = move
  await mark(target, { shard, slot, holder: source.id })
  const all = await readKeys(source.client, slot)
  let names: readonly Buffer[] | null = all
  for (let round = 0; names !== null && round < AHEAD_ROUNDS_MAX; round += 1) {
    const isFirst = round === 0
    await copyKeys(move, withoutMeta(names, shard), {
      begins: (batch) => watch.forget(batch),
      copied: async (count) => void (isFirst && progress(count, all.length)),
    })
    names = await watch.changed()
    if (names !== null && names.length <= FEW_KEYS) break
  }
  await move.at?.('ahead')
  move.mustHold()
}

/**
 * Copies all but `meta`, after a copy ahead only the keys written since. Returns how many keys there are.
 */
async function copyAll(
  move: SlotMove,
  watch: KeyWatch | null,
  progress: (moved: number, keys: number) => Promise<void>,
): Promise<number> {
  const { shard, slot, source, target } = move
  const changedKeys = async (): Promise<Buffer[] | null> => withoutMetaOrNull((await watch?.changed()) ?? null, shard)
  const begins = (batch: readonly Buffer[]): void => watch?.forget(batch)
  const all = withoutMeta(await readKeys(source.client, slot), shard)
  const names = (await changedKeys()) ?? all
  await progress(0, names.length)
  await copyKeys(move, names, { begins, copied: (count) => progress(count, names.length) })
  // Callers with a script of an earlier version are not fenced, so the inbox is copied last.
  await copyKeys(move, [Buffer.from(inboxKey(shard, 'mailbox'))], { begins })
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const [here, there] = await Promise.all([source, target].map(async (end) => namesAt(end, slot)))
    const missing = [...(here ?? [])].filter((name) => there?.has(name) !== true).map(binary)
    const extra = [...(there ?? [])].filter((name) => here?.has(name) !== true && name !== copyKey(shard))
    const differing = [...withoutMeta(missing, shard), ...((await changedKeys()) ?? [])]
    if (differing.length + extra.length === 0) break
    await remove(target.client, extra.map(binary))
    await copyKeys(move, differing, { begins })
  }
  return all.length + 1
}

function withoutMeta(names: readonly Buffer[], shard: number): Buffer[] {
  const meta = metaKey(shard)
  return names.filter((name) => String(name) !== meta)
}

function withoutMetaOrNull(names: readonly Buffer[] | null, shard: number): Buffer[] | null {
  return names === null ? null : withoutMeta(names, shard)
}

/** Names of keys, byte for byte. */
async function namesAt({ client }: MoveEnd, slot: number): Promise<Set<string>> {
  return new Set((await readKeys(client, slot)).map((name) => name.toString('latin1')))
}

function binary(name: string): Buffer {
  return Buffer.from(name, 'latin1')
}

/**
 * Waits until the writes at a node are in its replicas, in all connected ones if they are quick, and in at least one.
 */
async function reachReplicas({ client, name }: MoveEnd, isReplicated: boolean): Promise<void> {
  const all = [...(await client.info('replication')).matchAll(/^slave\d+:.*state=online/gm)].length
  if (all === 0 && !isReplicated) return
  await client.ping()
  if (Number(await client.wait(Math.max(all, 1), ALL_REPLICAS_MS)) >= Math.max(all, 1)) return
  const reached = Number(await client.wait(1, REPLICA_MS_MAX))
  if (reached < 1 && isReplicated)
    throw new Error(`No replica of ${name} has the moved data: check the replicas, then run the command again`)
}

/**
 * A disconnected target would claim the slot against a node elected in the meantime; so would one that gets it from a
 * replaced source.
 */
async function mustSeeAll({ slot, source, target, primaries }: SlotMove): Promise<void> {
  const [state, text] = await Promise.all([
    target.client.call('CLUSTER', 'INFO'),
    target.client.call('CLUSTER', 'NODES') as Promise<string>,
  ])
  const lines = text.split('\n')
  const isSeen = ({ id }: MoveEnd): boolean => {
    const line = lines.find((one) => one.startsWith(id)) ?? ''
    const flags = (line.split(' ')[2] ?? '').split(',')
    return / connected(?: |$)/.test(line) && !flags.includes('fail') && !flags.includes('fail?')
  }
  const unseen = primaries.find((end) => !isSeen(end))
  if (!String(state).includes('cluster_state:ok') || unseen !== undefined)
    throw new Error(`${target.name} cannot reach ${unseen?.name ?? source.name}: wait, then run the command again`)
  const holder = parseNodes(text, target.name).find((line) => hasSlot(line, slot))
  if (holder?.id !== source.id)
    throw new Error(`Slot ${slot} has left the node from which it was copied: run the command again`)
}

/**
 * Waits until every node reports that the target has the slot, after which no replica elected later can claim it. A
 * node that has marked it as coming gets no updates, and claims nothing.
 */
async function mustAgree(
  { slot, target, primaries, replicas, clock }: Pick<SlotMove, 'slot' | 'target' | 'primaries' | 'replicas' | 'clock'>,
  mayBeDeaf = false,
): Promise<void> {
  const endMs = clock.monotonicMs() + AGREED_MS_MAX
  const nodes = [...primaries, ...replicas]
  for (;;) {
    const texts = await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'NODES') as Promise<string>))
    const other = nodes.find(({ name }, at) => {
      const text = texts[at] ?? ''
      if (mayBeDeaf && text.includes(`[${slot}-<-`)) return false
      const has = parseNodes(text, name).filter((line) => hasSlot(line, slot))
      return has.length !== 1 || has[0]?.id !== target.id
    })
    if (other === undefined) return
    if (clock.monotonicMs() > endMs)
      throw new Error(`${other.name} does not know yet that ${target.name} has slot ${slot}: run the command again`)
    await pauseBy(clock, AGREED_STEP_MS)
  }
}
