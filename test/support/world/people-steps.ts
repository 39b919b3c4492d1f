/**
 * people-steps - requests that add a user to an account or remove one, step by step over one key space: a test decides
 * which request runs next. A request that never gets another turn has died.
 *
 * The handlers and commands are the real ones. Each of their reads and orders is a step.
 */
import { createHash } from 'node:crypto'
import type { Command, OutcomeBody } from '../../../cluster/behaviour.ts'
import { makeIds, shortId } from '../../../cluster/id.ts'
import { BEHAVIOURS } from '../../../src/actors/behaviours.ts'
import { makeAccountLink } from '../../../src/actors/dashboard/link.ts'
import { beginSession } from '../../../src/actors/dashboard/session.ts'
import { addUser } from '../../../src/actors/dashboard/user.ts'
import {
  prepareUserLook,
  type UserLookJob,
  type UserLookOutcome,
  userLookOutcome,
} from '../../../src/actors/dashboard/user-look.ts'
import type { DashboardDeps, DashboardRequest } from '../../../src/dashboard/deps.ts'
import { joinByLink } from '../../../src/dashboard/join.ts'
import { makeDeleteMember } from '../../../src/dashboard/people-routes.ts'
import { makeUserLookLane } from '../../../src/dashboard/user-look-lane.ts'
import { makeLinkId } from '../../../src/state/dashboard/link.ts'
import { packMember } from '../../../src/state/dashboard/member.ts'
import { loginsKey, membersKey, USERS_LANE, userKey } from '../../../src/state/dashboard/places.ts'
import { readUser } from '../../../src/views/dashboard/user.ts'
import type { Reader } from '../../../src/views/key.ts'
import { BY, makeTenant } from './tenant.ts'
import { World } from './turn.ts'
import { readerOf } from './world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 24)
const HOUR_MS = 3_600_000
const HMAC = 'h'.repeat(22)
const ADDRESS = 'ada@a.example'
const HASH = createHash('sha256').update('an administrator').digest('hex')
const COMMANDS = new Map(BEHAVIOURS.commands.map((type) => [type.name, type]))

/** A request that waits for its next turn; null: it has ended. */
interface Request {
  next: (() => Promise<void>) | null
  /** Its reads and the answers so far. */
  heard: string
}

/** Waits for the request's next turn, and does something in it. */
type Turn = <Result>(what: () => Result | Promise<Result>) => Promise<Result>

export class PeopleSteps {
  readonly world = new World(NOW_MS)
  readonly accountId: string
  /** An account that no request changes. */
  readonly otherId: string
  readonly userId: string
  private readonly requests: Request[] = []
  private links = 0

  /** In: the accounts of the user. `one` is the one that requests are about. */
  constructor(memberOf: readonly ('one' | 'other')[]) {
    const { world } = this
    const { shard } = world
    this.accountId = makeTenant(world).accountId
    this.otherId = makeIds({ shard, last: '', random: () => 0.5 }).next(NOW_MS)
    const made = world.run(addUser, { hmac: HMAC, address: ADDRESS, name: 'Ada', password: 'p' })
    if (made.kind !== 'user') throw new Error('No user')
    this.userId = made.userId
    this.put(this.accountId, 'an administrator', 'a')
    const begun = { accountId: this.accountId, userId: 'an administrator', sessionId: 's', hash: HASH }
    world.run(beginSession, { ...begun, isConfirmed: true, sinceMs: NOW_MS, factorMs: 0 })
    for (const one of memberOf) this.make(one === 'one' ? this.accountId : this.otherId)
    // Long ago, so that nothing is uncertain.
    if (memberOf.length > 0) this.settleAll()
  }

  /** A request that uses a link of the user. In: the id of one that another request uses, too. */
  join(linkId: string = this.makeLink()): void {
    this.begin(async (deps) => {
      const user = await readUser(deps.read, this.userId)
      const { accountId, userId } = this
      if (user !== null && user !== 'unavailable') await joinByLink(deps, user, { linkId, accountId, userId })
    })
  }

  /** A request of an administrator that removes the user. */
  remove(): void {
    this.begin(async (deps) => {
      const session = { kind: 'session', accountId: this.accountId, hash: HASH, row: { userId: 'an administrator' } }
      const route = { name: 'deleteMember', session: { level: 'a' } }
      const request = { params: { userId: this.userId }, key: session, route }
      await makeDeleteMember(deps)(request as unknown as DashboardRequest<'deleteMember'>)
    })
  }

  /** An ordered check of the user, as the walk does it, whatever is in progress. */
  walk(): void {
    this.begin(async ({ read }, turn) => {
      await turn(() => this.order({ name: 'look-at-users', cmdId: '', body: { userIds: [this.userId] } }))
      const claimed = await turn(() => {
        const item = this.item()
        return item === undefined ? null : this.world.claim<UserLookJob>(prepareUserLook, item)
      })
      if (claimed === null) return
      const lane = makeUserLookLane({ read, loginHmac: () => HMAC })
      const found = (await lane.perform(claimed.job, claimed as never)) as UserLookOutcome
      await turn(() => this.world.end(userLookOutcome, claimed, found))
    })
  }

  /** The id of a link into the account. */
  makeLink(): string {
    this.links += 1
    const linkId = makeLinkId(this.world.shard, String(this.links).padStart(32, '0'))
    const body = { accountId: this.accountId, linkId, address: ADDRESS, level: 'w', operatorHash: 'o', by: BY } as const
    this.world.run(makeAccountLink, { ...body, removesFactors: false })
    return linkId
  }

  /** Places of the requests that have not ended. */
  get under(): number[] {
    return this.requests.flatMap(({ next }, at) => (next === null ? [] : [at]))
  }

  /** All data that the next steps depend on. Two courses with the same data have the same future. */
  get state(): string {
    const { shard, nowMs } = this.world
    const row = [...this.world.hash(userKey(shard, this.userId))]
    return JSON.stringify([nowMs, row, this.memberOf, this.requests, this.under, this.item() ?? null])
  }

  /** One step of a request. */
  async step(at: number): Promise<void> {
    const request = this.requests[at]
    const next = request?.next
    if (request === undefined || next == null) throw new Error('It has ended')
    request.next = null
    await next()
    await new Promise(setImmediate)
  }

  /** An hour passes, with all looks that come in it. */
  async anHour(): Promise<void> {
    const endMs = this.world.nowMs + HOUR_MS
    for (let looks = 0; looks < 100; looks += 1) {
      const item = this.item()
      if (item === undefined || item.atMs > endMs) break
      this.world.nowMs = Math.max(this.world.nowMs, item.atMs)
      await this.look()
    }
    this.world.nowMs = endMs
  }

  /** The stored list of the user; null if the user is deleted. */
  get accounts(): readonly string[] | null {
    const packed = this.world.hash(userKey(this.world.shard, this.userId)).get('accounts')
    return packed === undefined ? null : (JSON.parse(packed) as string[])
  }

  /** Accounts that the list is unsure of. */
  get unsure(): readonly string[] {
    return Object.keys(JSON.parse(this.world.hash(userKey(this.world.shard, this.userId)).get('unsure') ?? '{}'))
  }

  /** The accounts' own data. */
  get memberOf(): string[] {
    return [this.accountId, this.otherId].filter((one) => this.members(one).has(this.userId))
  }

  /** Whether the address belongs to the user. */
  get isKnown(): boolean {
    return this.world.hash(loginsKey(this.world.shard)).get(HMAC) === this.userId
  }

  private begin(run: (deps: DashboardDeps, turn: Turn) => Promise<unknown>): void {
    const request: Request = { next: null, heard: '' }
    this.requests.push(request)
    const turn: Turn = (what) =>
      new Promise((resolve) => {
        request.next = async () => {
          const result = await what()
          request.heard += JSON.stringify(result, (_, value) => (value instanceof Map ? [...value] : value))
          resolve(result)
        }
      })
    const { read } = readerOf(this.world)
    const deps = {
      read: (shard: number, facts: Parameters<Reader>[1]) => turn(() => read(shard, facts)),
      ask: (_shard: number, command: Command) => turn(() => this.order(command)),
      newCmdId: () => `${this.world.nowMs}`,
      nowMs: () => this.world.nowMs,
      secrets: { loginHmac: () => HMAC },
    }
    void run(deps as unknown as DashboardDeps, turn)
  }

  private order({ name, body }: Command) {
    const type = COMMANDS.get(name)
    if (type === undefined) throw new Error(`No command ${name}`)
    return { kind: 'answer', reply: this.world.run(type, body) }
  }

  private item() {
    return this.world.items.get(`${USERS_LANE} ${shortId(this.userId)}`)
  }

  /** A look that dies once after its claim and is made again; its first attempt ends late, its second one twice. */
  private async look(): Promise<void> {
    const item = this.item()
    if (item === undefined) return
    const first = this.world.claim<UserLookJob>(prepareUserLook, item)
    if (first === null) return
    const job = this.world.run(prepareUserLook, { lane: USERS_LANE, item: item.item }) as UserLookJob
    const again = this.world.claim<UserLookJob>(prepareUserLook, item)
    if (again === null) throw new Error('It is claimed again')
    const lane = makeUserLookLane({ read: readerOf(this.world).read, loginHmac: () => HMAC })
    const found = (await lane.perform(job, again as never)) as UserLookOutcome
    this.world.end(userLookOutcome, again, found)
    for (const { attempt } of [again, first]) {
      const body = { lane: USERS_LANE, item: item.item, attempt, current: false, outcome: found }
      this.world.run(userLookOutcome, body satisfies OutcomeBody<UserLookOutcome>)
    }
  }

  private make(accountId: string): void {
    this.put(accountId, this.userId, 'w')
    const body = { accountId, userId: this.userId }
    this.order({ name: 'begin-join', cmdId: '', body })
    this.order({ name: 'join-account', cmdId: '', body: { ...body, isMember: true } })
  }

  private put(accountId: string, userId: string, level: 'a' | 'w'): void {
    const args = [userId, packMember({ level, sinceMs: NOW_MS })]
    this.world.apply({ key: membersKey(this.world.shard, accountId), write: 'HSET', args })
  }

  private settleAll(): void {
    this.world.apply({ key: userKey(this.world.shard, this.userId), write: 'HSET', args: ['unsure', '{}'] })
    this.world.items.delete(`${USERS_LANE} ${shortId(this.userId)}`)
  }

  private members(accountId: string): ReadonlyMap<string, string> {
    return this.world.hash(membersKey(this.world.shard, accountId))
  }
}
