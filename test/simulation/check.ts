/**
 * check - what must hold when everything has ended, read from the store alone and compared with the answers that
 * clients received.
 */
import { idOfEntry } from '../../cluster/id.ts'
import { entityKey, journalKey, mailboxKey, outcomesKey, poisonKey } from '../../cluster/keyspace.ts'
import { parseMove } from '../../cluster/slots/move-fence.ts'
import { withoutSum, withSum } from '../../cluster/sum.ts'
import { ACCOUNTS, type Ask } from './client.ts'
import { SimCluster } from './cluster/sim-cluster.ts'
import { countersAt, hashAt, leftOver, streamAt } from './contents.ts'
import { ILL_MS } from './half-dead.ts'
import { SHARDS, type SimProcess } from './process.ts'
import type { Simulation } from './simulation.ts'
import { ACCOUNT, type Account, type AccountEvent, refOf } from './toy.ts'
import { isTerminal } from './toy-cancel.ts'
import { logKey, postingKey, shardOfAccount, statusKey } from './toy-keys.ts'

/** Unreachable processes have been declared dead by then. */
const DEATH_MS = 12_000

/** A message as the log has it. */
interface Logged {
  readonly id: string
  readonly account: string
  readonly cmdId: string
  readonly key: string
}

/** Checks everything. Each failed check becomes a violation in the simulation's observer. */
export async function checkAll(sim: Simulation): Promise<void> {
  for (const what of (await leftOver(sim)).what) sim.observer.violated(`Left over: ${what}`)
  const logged: Logged[] = []
  for (const account of ACCOUNTS) {
    const mine = await logOf(sim, account)
    logged.push(...mine)
    await checkAccount(sim, account, mine)
  }
  checkAsks(sim, logged)
  checkLosses(sim)
  for (let shard = 0; shard < SHARDS; shard += 1) await checkShard(sim, shard)
  if (sim.base instanceof SimCluster) checkMoves(sim, sim.base)
  await checkMemory(sim)
}

async function logOf(sim: Simulation, account: string): Promise<Logged[]> {
  const shard = shardOfAccount(account)
  const entries = await streamAt(sim, shard, logKey(account))
  return entries.map(({ id, fields }) => ({ id: idOfEntry(id, shard), account, cmdId: fields[1]!, key: fields[3]! }))
}

async function checkAccount(sim: Simulation, account: string, logged: readonly Logged[]): Promise<void> {
  const shard = shardOfAccount(account)
  const { n } = JSON.parse((await countersAt(sim, shard)).get(account) ?? '{"n":0}') as { n: number }
  if (n !== logged.length) sim.observer.violated(`${account}: counted ${n}, logged ${logged.length}`)
  const { limit } = await folded(sim, account)
  if (n > limit) sim.observer.violated(`${account}: counted ${n} with a limit of ${limit}`)
  const statuses = await hashAt(sim, shard, statusKey(account))
  for (const { id } of logged) {
    const { state } = JSON.parse(statuses.get(id) ?? '{"state":"missing"}') as { state: string }
    if (!isTerminal(state) && !sim.observer.ungranted.has(shard))
      sim.observer.violated(`${account}.${id} never ended: ${state}`)
  }
  if (statuses.size !== logged.length)
    sim.observer.violated(`${account}: ${statuses.size} states of ${logged.length} messages`)
  const postings = [
    ...(await streamAt(sim, shard, postingKey(account, 0))),
    ...(await streamAt(sim, shard, postingKey(account, 1))),
  ]
  if (postings.length !== logged.length)
    sim.observer.violated(`${account}: ${postings.length} postings of ${logged.length} messages`)
}

/** The account's state; each entry's state must be the one before it with its events applied. */
async function folded(sim: Simulation, account: string): Promise<Account> {
  const entries = await streamAt(sim, shardOfAccount(account), entityKey(shardOfAccount(account), 'account', account))
  let before: Account | null = entries.length < 16 ? ACCOUNT.empty : null
  for (const { fields } of entries) {
    const events = JSON.parse(fields[1]!) as AccountEvent[]
    const state = withoutSum(fields[3]!, 'state')
    const expected = before === null ? state : JSON.stringify(events.reduce(ACCOUNT.apply, before))
    if (state !== expected)
      sim.observer.violated(`${account}: state ${state} is not the fold of its events, ${expected}`)
    before = JSON.parse(state) as Account
  }
  return before ?? ACCOUNT.empty
}

function checkAsks(sim: Simulation, logged: readonly Logged[]): void {
  const byCommand = grouped(logged, ({ cmdId }) => cmdId)
  const ids = new Set(logged.map(({ id }) => id))
  const answers = new Map<string, string>()
  for (const ask of sim.clients.asks) {
    if (ask.name === 'explode' && ask.result?.kind === 'answer') sim.observer.violated(`Ask ${ask.n} came true`)
    if (ask.name !== 'accept') continue
    const own = byCommand.get(ask.cmdId)?.length ?? 0
    const { times, key, account } = ask.body as unknown as { times: number; key: string; account: string }
    if (own !== 0 && own !== times) sim.observer.violated(`Ask ${ask.n}: ${own} entries of ${times}`)
    const reply = repliedIds(ask)
    if (reply === null) checkRefused(sim, ask, own)
    else checkAccepted(sim, { ask, reply, ids })
    if (reply === null || key === '' || reply.some((id) => sim.observer.lost.has(id))) continue
    const before = answers.get(`${account} ${key}`) ?? reply.join()
    if (before !== reply.join()) sim.observer.violated(`Ask ${ask.n}: the same key was answered with another message`)
    answers.set(`${account} ${key}`, before)
  }
  const keyed = grouped(
    logged.filter(({ key }) => key !== ''),
    ({ account, key }) => `${account} ${key}`,
  )
  for (const [name, entries] of keyed)
    if (new Set(entries.map(({ cmdId }) => cmdId)).size > 1)
      sim.observer.violated(`${name}: one key, more than one message`)
}

/** The ids that an ask was answered with; null when it was not accepted. */
function repliedIds({ result }: Ask): readonly string[] | null {
  if (result?.kind !== 'answer') return null
  return (result.reply as { ids?: readonly string[] }).ids ?? null
}

function checkAccepted(
  sim: Simulation,
  { ask, reply, ids }: { ask: Ask; reply: readonly string[]; ids: ReadonlySet<string> },
): void {
  for (const id of reply)
    if (!ids.has(id) && !sim.observer.lost.has(id))
      sim.observer.violated(`Ask ${ask.n}: answered with ${id}, which is in no log`)
}

/**
 * An ask that was refused or answered with "not available" has no message. For asks without an answer, either is
 * possible.
 */
function checkRefused(sim: Simulation, { n, result, process, isRemote, askedAtMs }: Ask, own: number): void {
  if (own === 0 || result === null || result.kind === 'silent' || process.state === 'dead') return
  // A deadline that has passed guarantees nothing if the store's clock is set back afterwards. If the store itself is
  // set back, a refused command is in the mailbox again.
  if (isRemote && result.kind === 'unavailable' && sim.backAtMs.some((atMs) => atMs >= askedAtMs)) return
  if (isRemote && sim.observer.setBackAtMs.some((atMs) => atMs >= askedAtMs)) return
  sim.observer.violated(`Ask ${n}: told ${JSON.stringify(result)}, but it was accepted`)
}

/** A living worker whose confirmed commits the store has lost reports it. */
function checkLosses(sim: Simulation): void {
  for (const { shard, owner } of unreportedLosses(sim))
    sim.observer.violated(`Shard ${shard}: the store has lost commits, and p${owner.n} said nothing`)
}

/** Losses that a living worker has not reported. */
export function unreportedLosses({ losses }: Simulation): Simulation['losses'] {
  return losses.filter(
    ({ shard, owner, atMs }) => owner.state === 'running' && wasSeen(owner, atMs) && !owner.toldLosses.has(shard),
  )
}

/** Whether others had no reason to take its shards, shortly before a time and since. */
function wasSeen({ doubtedAtMs, ill }: SimProcess, atMs: number): boolean {
  return Math.max(doubtedAtMs, ill === null ? 0 : ill.sinceMs + ILL_MS) < atMs - DEATH_MS
}

async function checkShard(sim: Simulation, shard: number): Promise<void> {
  const journal = await streamAt(sim, shard, journalKey(shard))
  const seq = (await sim.base.metas([shard]))?.[0]?.seq ?? 0
  const first = seq - journal.length + 1
  journal.forEach(({ id }, place) => {
    if (id !== `${first + place}-0`)
      sim.observer.violated(`Shard ${shard}: journal has ${id} at place ${place} of ${journal.length}`)
  })
  if (journal.length < Math.min(seq, 256))
    sim.observer.violated(`Shard ${shard}: journal of ${journal.length} after ${seq} commits`)
  const accounts = ACCOUNTS.filter((account) => shardOfAccount(account) === shard)
  const keys = [mailboxKey(shard), outcomesKey(shard), poisonKey(shard), journalKey(shard)]
  for (const account of accounts)
    keys.push(logKey(account), postingKey(account, 0), postingKey(account, 1), entityKey(shard, 'account', account))
  for (const key of keys)
    for (const { fields } of await streamAt(sim, shard, key))
      if (fields.some((text) => text.includes('@'))) sim.observer.violated(`An address lies in the stream ${key}`)
}

/**
 * No move is left unfinished, and the replicas of a shard that was moved back and forth hold exactly its current keys.
 */
function checkMoves({ observer }: Simulation, base: SimCluster): void {
  for (let shard = 0; shard < SHARDS; shard += 1)
    if (parseMove(base.at(shard).metaOf(shard).get('owner') ?? '') !== null)
      observer.violated(`Shard ${shard}: the fence stays`)
  for (const { extraAtReplicas, name } of base.primaries)
    for (const key of extraAtReplicas) observer.violated(`A replica of ${name} still has what is gone there: ${key}`)
}

function grouped(logged: readonly Logged[], nameOf: (entry: Logged) => string): Map<string, Logged[]> {
  const groups = new Map<string, Logged[]>()
  for (const entry of logged) groups.set(nameOf(entry), [...(groups.get(nameOf(entry)) ?? []), entry])
  return groups
}

/** Compares the memory of every running shard object with the store. */
async function checkMemory(sim: Simulation): Promise<void> {
  for (const account of ACCOUNTS) {
    const shard = shardOfAccount(account)
    const owner = (await sim.base.metas([shard]))?.[0]?.owner
    const process = sim.processes.find(({ worker, state }) => worker.id === owner && state === 'running')
    const memory = process?.shardOf(shard)?.memory
    if (memory === undefined) {
      sim.observer.violated(`Shard ${shard} has no owner`)
      continue
    }
    const ref = refOf(account)
    const entries = await streamAt(sim, shard, entityKey(shard, 'account', account))
    const stored = entries[entries.length - 1]?.fields[3] ?? withSum(JSON.stringify(ACCOUNT.empty))
    const state = withoutSum(stored, 'state')
    if (memory.hasEntity(ref) && JSON.stringify(memory.entity(ref, 0)) !== state)
      sim.observer.violated(`${account}: remembered ${JSON.stringify(memory.entity(ref, 0))}, stored ${state}`)
    const counter = (await countersAt(sim, shard)).get(account) ?? 'null'
    if (memory.hasCounter(account) && JSON.stringify(memory.counter(account, 0)) !== counter)
      sim.observer.violated(`${account}: remembered ${JSON.stringify(memory.counter(account, 0))}, stored ${counter}`)
  }
}
