/**
 * store-equality - the store of the simulation and Redis give the same answers to the same random requests, and hold
 * the same afterwards. `SEED=<n>` makes others.
 */
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { journalKey, mailboxKey, metaKey, repliesKey, shardTag } from '../../../cluster/keyspace.ts'
import { STAGED_MS } from '../../../cluster/redis/mailbox-script.ts'
import { connectRedisStore, type RedisStore } from '../../../cluster/redis/store.ts'
import type { Commit, Verdict } from '../../../cluster/store.ts'
import type { Dumped } from '../../simulation/sim-data.ts'
import { SimStore } from '../../simulation/sim-store.ts'
import { makeRandom, RequestMaker } from '../../support/store/random-ops.ts'
import { startRedis } from '../../support/store/redis.ts'
import { dumpRedis } from '../../support/store/redis-dump.ts'

const SEED = Number(process.env.SEED ?? 1)
const SHARDS = 24
const ROUNDS = 130
const ROUNDS_PER_DUMP = 26

interface Pair {
  readonly real: RedisStore
  readonly sim: SimStore
}

/**
 * The parts in which two verdicts must agree. Clocks differ by the time between two calls, and sentences are for
 * people.
 */
function essence(verdict: Verdict): unknown {
  const { kind } = verdict
  if (kind === 'conflict') return [kind, verdict.seq]
  if (kind === 'missing') return [kind, verdict.key]
  if (kind === 'refused') return [kind, verdict.reason]
  return [kind]
}

/** A dump without what differs by nature: when things were taken, ids and lives counted from the clock, old journal. */
function comparable(dumped: Map<string, Dumped>, shard: number): Record<string, unknown> {
  const keys: Record<string, unknown> = {}
  for (const [name, { kind, value, last, expiresAtMs }] of dumped) {
    const isTimed = name.startsWith(`${shardTag(shard)}:fenced:`) || name.startsWith(`${shardTag(shard)}:staged:`)
    let shown = value
    if (name === metaKey(shard)) shown = (value as [string, string][]).filter(([field]) => field !== 'since')
    if (name === journalKey(shard)) shown = (value as unknown[]).slice(-200)
    if (name === mailboxKey(shard)) shown = (value as [string, string[]][]).map(([, fields]) => fields)
    const end = name === mailboxKey(shard) ? '' : last
    keys[name] = [kind, shown, end, isTimed ? expiresAtMs > 0 : expiresAtMs]
  }
  return keys
}

class Trial {
  readonly maker: RequestMaker
  private readonly pair: Pair
  private token = ''
  private seq = 0
  private lid = ''
  private commits = 0
  private readonly counts: Map<string, number>

  constructor(shard: number, pair: Pair, counts: Map<string, number>) {
    this.maker = new RequestMaker(shard, makeRandom(SEED + shard))
    this.pair = pair
    this.counts = counts
  }

  /** One request of any kind to both; their answers as `[real, simulated, what]`. */
  async round(): Promise<[unknown, unknown, string][]> {
    const { maker } = this
    const answers: [unknown, unknown, string][] = []
    if (this.token === '' || maker.chance(0.03)) answers.push(await this.acquire())
    if (maker.chance(0.02)) {
      const request = { shard: maker.shard, token: maker.chance(0.5) ? this.token : '9:z' }
      answers.push(await this.both((store) => store.release(request), 'release'))
      answers.push(await this.both((store) => store.fenced(request), 'fenced'))
    }
    if (maker.chance(0.1)) answers.push(await this.enqueue(), await this.entries())
    if (maker.chance(0.02)) answers.push(await this.replies())
    const commit = this.commit()
    const verdict = await this.verdict(commit)
    answers.push(verdict)
    const kind = this.count(verdict)
    if (kind === 'ok') {
      this.seq += 1
      if (commit.lid !== '') this.lid = commit.lid
      if (maker.chance(0.1)) answers.push(await this.again(commit))
    }
    const facts = maker.facts()
    answers.push(await this.both((store) => store.read(maker.shard, facts), JSON.stringify(facts)))
    return answers
  }

  metas(): Promise<[unknown, unknown, string]> {
    return this.both((store) => store.metas([this.maker.shard, 200]), 'metas')
  }

  private commit(): Commit {
    const { maker } = this
    const nowMs = this.pair.sim.nowMs
    this.commits += 1
    const { id, entryId } = maker.newId(nowMs, maker.chance(0.03) ? '' : this.lid)
    const hasIds = maker.chance(0.5)
    return {
      shard: maker.shard,
      token: maker.chance(0.02) ? '0:other' : this.token,
      seq: maker.chance(0.02) ? Math.max(0, this.seq - 1 + maker.below(3)) : this.seq,
      commitId: `${this.token}:${this.commits}`,
      nowMs: maker.chance(0.02) ? nowMs - 60_000 : nowMs + maker.below(1_000),
      deadlineMs: maker.chance(0.05) ? maker.of([nowMs - 60_000, nowMs + 60_000]) : 0,
      lid: maker.chance(0.01) ? 'no id' : hasIds ? id : '',
      firstEntryId: hasIds ? entryId : '',
      cursor: maker.chance(0.2) ? `${this.commits}-1` : '',
      outcomesCursor: maker.chance(0.1) ? `${this.commits}-2` : '',
      frees: maker.chance(0.3),
      note: `works=${this.commits} ünd`,
      ops: maker.ops(nowMs),
    }
  }

  /**
   * Redis is sent joined writes, so that of two faults in one commit another one may come first. Where one store names
   * a key that is missing and the other does not, both must refuse what is left without that op.
   */
  private async verdict(commit: Commit): Promise<[unknown, unknown, string]> {
    const send = (one: Commit) =>
      this.both((store) => store.commit(one).then(essence), JSON.stringify(one).slice(0, 2_000))
    const verdict = await send(commit)
    const [[real, missing], [sim, absent]] = verdict as unknown as [[string, string?], [string, string?]]
    if (![`${real} ${sim}`, `${sim} ${real}`].includes('badop missing')) return verdict
    const key = missing ?? absent
    const rest = commit.ops.filter((op) => op.write !== 'PEXPIREAT' || op.key !== key)
    const second = await send({ ...commit, ops: rest })
    return second[0]?.toString() === 'badop' && isDeepStrictEqual(second[0], second[1]) ? second : verdict
  }

  private async again(commit: Commit): Promise<[unknown, unknown, string]> {
    const answer = await this.both((store) => store.commit(commit).then(essence), 'sent again')
    this.count(answer)
    return answer
  }

  private count([, mine]: readonly unknown[]): string {
    const kind = (mine as string[])[0]!
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
    return kind
  }

  private async acquire(): Promise<[unknown, unknown, string]> {
    const { maker } = this
    const sawToken = maker.chance(0.1) ? '7:wrong' : this.token
    const newToken = `${this.commits + 1}:${maker.below(1e6)}`
    const request = { shard: maker.shard, sawToken, newToken, worker: `w${maker.below(3)}` }
    const answer = await this.both((store) => store.acquire(request), 'acquire')
    if (sawToken === this.token) this.token = newToken
    return answer
  }

  private enqueue(): Promise<[unknown, unknown, string]> {
    const { maker } = this
    const parcels = Array.from({ length: 1 + maker.below(2) }, (_, n) => ({
      shard: maker.shard,
      parcelId: `p${this.commits}.${n}`,
      count: 1 + n,
      said: Buffer.from('{"ü":1}'),
    }))
    return this.both((store) => store.enqueue({ replyTo: 'w1', commandsMax: 3, parcels }), 'enqueue')
  }

  /** The contents of the mailbox without its ids, which come from the clock. */
  private entries(): Promise<[unknown, unknown, string]> {
    const request = { shard: this.maker.shard, of: 'mailbox', from: '(0-0', count: 2 } as const
    const read = async (store: Pair['sim'] | RedisStore): Promise<unknown> =>
      (await store.entries(request))?.map(({ parcelId, replyTo, body }) => [parcelId, replyTo, String(body)])
    return this.both(read, 'entries')
  }

  /** Replies, written by hand: two fields in a row, one behind a gap. */
  private async replies(): Promise<[unknown, unknown, string]> {
    const { shard } = this.maker
    const key = repliesKey(shard, 1)
    const fields = ['p/0', '2 [1,2]', 'p/2', `1 [${this.commits}]`, 'p/4', '1 [5]', 'q/1', '1 []', 'r/0', 'odd']
    await this.pair.real.views.hset(key, ...fields)
    this.pair.sim.write({ key, write: 'HSET', args: fields })
    const asked = ['p', 'q', 'r', 's'].map((parcelId) => ({ shard, parcelId, slice: 1 }))
    return this.both(async (store) => (await store.replies(asked)).map((one) => one?.fields), 'replies')
  }

  private async both(
    call: (store: Pair['sim'] | RedisStore) => Promise<unknown>,
    what: string,
  ): Promise<[unknown, unknown, string]> {
    this.pair.sim.nowMs = Date.now()
    return [await call(this.pair.real), await call(this.pair.sim), what]
  }
}

const STARTED_MS = performance.now()

async function compareDumps(t: Test, { real, sim }: Pair, shard: number): Promise<boolean> {
  sim.nowMs = Date.now()
  const mine = new Map([...sim.dump()].filter(([name]) => name.startsWith(shardTag(shard))))
  const theirs = await dumpRedis(real.views, `${shardTag(shard)}*`)
  // A staged parcel expires by Redis' own clock, which a slow machine does not stop.
  const isOld = performance.now() - STARTED_MS > STAGED_MS
  for (const name of mine.keys()) if (isOld && name.includes(':staged:') && !theirs.has(name)) mine.delete(name)
  const same = JSON.stringify(comparable(theirs, shard)) === JSON.stringify(comparable(mine, shard))
  if (!same) t.same(comparable(mine, shard), comparable(theirs, shard), `contents of shard ${shard}, SEED=${SEED}`)
  return same
}

t.test('store equality: SimStore and Redis answer alike and hold alike', async (t) => {
  const redis = await startRedis({ durability: 'memory' })
  t.teardown(() => redis.stop())
  const real = await connectRedisStore({ address: redis.socketPath, durability: 'memory' })
  t.teardown(() => real.close())
  const pair = { real, sim: new SimStore(Date.now()) }
  const counts = new Map<string, number>()
  const trials = Array.from({ length: SHARDS }, (_, shard) => new Trial(shard, pair, counts))
  let compared = 0
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const trial of trials) {
      const answers = [...(await trial.round()), await trial.metas()]
      for (const [theirs, mine, what] of answers) {
        compared += 1
        if (isDeepStrictEqual(mine, theirs)) continue
        t.same(mine, theirs, `${what} SEED=${SEED}`)
        t.fail('the stores differ')
        return
      }
      const isDumped = round % ROUNDS_PER_DUMP === 0
      if (isDumped && !(await compareDumps(t, pair, trial.maker.shard))) return
    }
  }
  t.comment(`SEED=${SEED}`, Object.fromEntries(counts))
  t.ok(compared > SHARDS * ROUNDS * 3, 'every request was compared')
  for (const kind of ['ok', 'fenced', 'conflict', 'late', 'clock', 'badop', 'missing', 'dup'])
    t.ok((counts.get(kind) ?? 0) > 0, `${kind} happened`)
  t.ok((counts.get('ok') ?? 0) > (SHARDS * ROUNDS) / 4, 'many commits were good')
})
