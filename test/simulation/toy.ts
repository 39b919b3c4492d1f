/**
 * toy - a small product for the simulation: accounts with a limit, messages that are counted, logged and performed.
 *
 * It uses everything that the runtime offers: entities with events, absolute counters, records that make a repeated
 * ask idempotent, streams whose entries are ids, a `need` for facts that only the first facts reveal, items that are
 * claimed by the commit that creates them or later, outcomes that end, defer or throw, timers that set themselves
 * again.
 */
import type {
  Behaviours,
  CommandType,
  Decision,
  EntityType,
  Fact,
  LaneType,
  Op,
  OutcomeBody,
  PerformedClaim,
  PrepareBody,
  Ref,
  TimerBody,
} from '../../cluster/behaviour.ts'
import { entryIdOf } from '../../cluster/id.ts'
import { cancel } from './toy-cancel.ts'
import {
  accountOfItem,
  capKey,
  contentKey,
  idempotencyKey,
  logKey,
  oddKey,
  personKey,
  postingKey,
  shardOfAccount,
  statusKey,
} from './toy-keys.ts'

export const LIMIT_AT_FIRST = 6
const TICKS_MAX = 4
const TICK_MS = 4_000
const BUCKETS = 2
const CONTENT_LIFE_MS = 600_000
/** The family of lanes with one attempt at a time, each on one shard. */
export const SERIAL = 'hook'

export function isSerial(lane: string): boolean {
  return lane.startsWith(`${SERIAL}/`)
}
const ATTEMPTS_MAX = 4

/** The history of an account. Its state is the fold of its events. */
export interface Account {
  readonly limit: number
  readonly ticks: number
  readonly persons: number
  readonly abandoned: number
}

export type AccountEvent =
  | { readonly type: 'raised'; readonly by: number }
  | { readonly type: 'ticked' | 'met' | 'abandoned' }

export const ACCOUNT: EntityType<Account, AccountEvent> = {
  kind: 'account',
  version: 1,
  empty: { limit: LIMIT_AT_FIRST, ticks: 0, persons: 0, abandoned: 0 },
  apply(state, event) {
    switch (event.type) {
      case 'raised':
        return { ...state, limit: state.limit + event.by }
      case 'ticked':
        return { ...state, ticks: state.ticks + 1 }
      case 'met':
        return { ...state, persons: state.persons + 1 }
      case 'abandoned':
        return { ...state, abandoned: state.abandoned + 1 }
    }
  },
}

export interface AcceptBody {
  readonly account: string
  /** Idempotency key; '' for none. */
  readonly key: string
  readonly hmac: string
  /** Personal data: allowed in hashes, never in a stream. */
  readonly address: string
  readonly lane: string
  readonly delayMs: number
  readonly times: number
}

export type AcceptReply = { readonly ids: readonly string[] } | { readonly refused: string }

export interface Job {
  readonly item: string
}

export type Outcome =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'later'; readonly afterMs: number }
  | { readonly kind: 'odd' }

/** Faults planted in the behaviours themselves. */
export interface ToyBugs {
  readonly addressInStream?: boolean
}

export const refOf = (account: string): Ref => ({ kind: 'account', id: account })

export interface Toy {
  readonly bugs: ToyBugs
  room(lane: string): number
  perform(job: Job, claim: PerformedClaim): Promise<Outcome>
  performAtOnce(job: Job, claim: { item: string; lane: string; attempt: number }): Outcome | undefined
  /** Whether the timer that fires now throws. */
  timerThrows(): boolean
}

/** The behaviours of one worker. */
export function toyBehaviours(toy: Toy): Behaviours {
  return {
    entities: [ACCOUNT as unknown as EntityType],
    commands: [accept(toy.bugs), raise, cancel, explode] as unknown as CommandType[],
    timers: { tick: tick(toy) as CommandType<TimerBody> },
    lanes: [
      lane(toy, 'send', { holdMs: 9_000, claimsStand: false, serial: false }),
      lane(toy, 'mail', { holdMs: 90_000, claimsStand: false, serial: false }),
      lane(toy, 'post', { holdMs: 5_000, claimsStand: true, serial: false }),
      lane(toy, SERIAL, { holdMs: 5_000, claimsStand: true, serial: true }),
    ] as unknown as LaneType[],
  }
}

/** Fields of an account's persons that are read whole: then a new one needs no read, further on it does. */
const PERSONS_WHOLE_MAX = 10

/** Accepts a message of one or more parts. Each part is an object of its own, counted, logged and performed. */
function accept(bugs: ToyBugs): CommandType<AcceptBody, AcceptReply> {
  return {
    name: 'accept',
    entities: ({ account }) => [refOf(account)],
    counters: ({ account }) => [account],
    facts: ({ account, key, hmac }) => [
      ...(key === '' ? [] : [field(idempotencyKey(account), key)]),
      { ...field(personKey(account), hmac), wholeMax: PERSONS_WHOLE_MAX },
      field(capKey(account), 'told'),
    ],
    decide(body, states, facts, context, { cmdId }): Decision<AcceptReply> {
      const { account, key, hmac, address, times } = body
      const before = key === '' ? null : facts.field(idempotencyKey(account), key)
      if (before !== null) return { kind: 'done', reply: { ids: JSON.parse(before) } }
      const count = states.counter<{ n: number }>(account)?.n ?? 0
      if (count + times > states.get<Account>(refOf(account)).limit)
        return overLimit(account, facts.field(capKey(account), 'told'))
      const known = facts.field(personKey(account), hmac)
      const next: Fact = field(personKey(account), '#')
      if (known === null && !facts.has(next)) return { kind: 'need', facts: [next] }
      const met = known === null ? Number(facts.field(personKey(account), '#') ?? '0') + 1 : 0
      const person = known ?? String(met)
      const ids = Array.from({ length: times }, () => context.newId())
      const said = bugs.addressInStream === true ? ['a', address] : []
      const fields = ['c', cmdId, 'k', key, 'p', person, ...said]
      const ops: Op[] =
        met === 0
          ? []
          : [{ key: personKey(account), write: 'HSET', args: [hmac, person, '#', person, `n${person}`, address] }]
      for (const id of ids) ops.push(...messageOps(id, { body, fields, person, nowMs: context.nowMs }))
      if (key !== '') ops.push({ key: idempotencyKey(account), write: 'HSET', args: [key, JSON.stringify(ids)] })
      return {
        kind: 'done',
        reply: { ids },
        events: met === 0 ? [] : [{ ref: refOf(account), event: { type: 'met' } }],
        counters: [{ owner: account, value: { n: count + times } }],
        ops,
        due: ids.map((id) => {
          const item = `${account}.${id}`
          const due = { lane: body.lane, item, atMs: context.nowMs + body.delayMs }
          // In a serial lane other items may already wait, so nothing is claimed at once.
          return isSerial(body.lane) ? due : { ...due, job: { item } }
        }),
      }
    },
  }
}

function messageOps(
  id: string,
  { body, fields, person, nowMs }: { body: AcceptBody; fields: readonly string[]; person: string; nowMs: number },
): Op[] {
  const { account, lane: name } = body
  const entryId = entryIdOf(id)
  return [
    { key: logKey(account), write: 'XADD', args: [entryId, ...fields] },
    { key: postingKey(account, Number(person) % BUCKETS), write: 'XADD', args: [entryId, 'p', person] },
    {
      key: statusKey(account),
      write: 'HSET',
      args: [id, JSON.stringify({ state: 'waiting', lane: name, attempts: 0 })],
    },
    { key: contentKey(account, id), write: 'SET', args: ['text', 'PXAT', String(nowMs + CONTENT_LIFE_MS)] },
  ]
}

/** The first refusal of an account is stored, later ones are only answered. */
function overLimit(account: string, told: string | null): Decision<AcceptReply> {
  const answer = { refused: 'limit' }
  if (told !== null) return { kind: 'refuse', answer }
  return { kind: 'refuse', answer, records: { ops: [{ key: capKey(account), write: 'HSET', args: ['told', '1'] }] } }
}

/** Raises an account's limit; the first time, its timer is armed. */
const raise: CommandType<{ account: string; by: number }, number> = {
  name: 'raise',
  entities: ({ account }) => [refOf(account)],
  counters: () => [],
  facts: () => [],
  decide({ account, by }, states, _facts, { nowMs }) {
    const { limit } = states.get<Account>(refOf(account))
    const due = limit === LIMIT_AT_FIRST ? [{ lane: 'timers', item: `tick:${account}`, atMs: nowMs + TICK_MS }] : []
    return { kind: 'done', reply: limit + by, events: [{ ref: refOf(account), event: { type: 'raised', by } }], due }
  },
}

/** Throws if it is ordered to, or returns ops that the store refuses. Its effect never happens. */
const explode: CommandType<{ account: string; where: string }, null> = {
  name: 'explode',
  entities: ({ where, account }) => (where === 'entities' ? thrown() : [refOf(account)]),
  counters: () => [],
  facts: ({ where }) => (where === 'facts' ? thrown() : []),
  decide({ account, where }, _states, _facts, { nowMs }, { cmdId }) {
    const gone: Op = { key: contentKey(account, cmdId), write: 'PEXPIREAT', args: [String(nowMs + CONTENT_LIFE_MS)] }
    if (where === 'missing') return { kind: 'done', reply: null, ops: [gone] }
    const odd: Op = { key: oddKey(account), write: 'XADD', args: ['7-7', 'odd', 'odd'] }
    if (where === 'store') return { kind: 'done', reply: null, ops: [odd, odd] }
    return thrown()
  },
}

function thrown(): never {
  throw new Error('Thrown on purpose')
}

/** Ticks a few times; each tick arms the next. */
function tick(toy: Toy): CommandType<TimerBody, null> {
  const accountOf = (item: string): string => item.slice(item.indexOf(':') + 1)
  return {
    name: 'tick',
    frees: true,
    entities: ({ item }) => [refOf(accountOf(item))],
    counters: () => [],
    facts: () => [],
    decide({ item }, states, _facts, { nowMs }) {
      if (toy.timerThrows()) return thrown()
      const ref = refOf(accountOf(item))
      const { ticks } = states.get<Account>(ref)
      const due = ticks + 1 < TICKS_MAX ? [{ lane: 'timers', item, atMs: nowMs + TICK_MS }] : []
      return { kind: 'done', reply: null, events: [{ ref, event: { type: 'ticked' } }], due }
    },
  }
}

interface Status {
  readonly state: string
  readonly lane: string
  readonly attempts: number
}

function lane(
  toy: Toy,
  prefix: string,
  kind: Pick<LaneType, 'holdMs' | 'claimsStand'> & { readonly serial: boolean },
): LaneType<Job, Outcome> {
  const statusFact = ({ item }: { item: string }): Fact =>
    field(statusKey(accountOfItem(item)), item.slice(item.indexOf('.') + 1))
  return {
    prefix,
    ...kind,
    room: (name) => toy.room(name),
    perform: (job, claim) => toy.perform(job, claim),
    performAtOnce: (job, claim) => toy.performAtOnce(job, claim),
    prepare: {
      name: 'prepare',
      entities: () => [],
      counters: () => [],
      facts: (body: PrepareBody) => [statusFact(body)],
      decide({ item }, _states, facts) {
        const { key, fields } = statusFact({ item }) as Fact & { read: 'fields' }
        // The runtime guarantees that a finished item is not performed again, so the state is not checked here.
        return { kind: 'done', reply: facts.field(key, fields[0]!) === null ? null : { item } }
      },
    },
    outcome: {
      name: 'outcome',
      entities: ({ item }) => [refOf(accountOfItem(item))],
      counters: () => [],
      facts: (body) => [statusFact(body)],
      decide(body, _states, facts, { nowMs }) {
        const { key, fields } = statusFact(body) as Fact & { read: 'fields' }
        const packed = facts.field(key, fields[0]!)
        const status = packed === null ? null : (JSON.parse(packed) as Status)
        return outcomeOf(body, { key, id: fields[0]!, status, nowMs })
      },
    },
  }
}

function outcomeOf(
  { item, lane: name, outcome, current }: OutcomeBody<Outcome>,
  { key, id, status, nowMs }: { key: string; id: string; status: Status | null; nowMs: number },
): Decision<null> {
  const isOpen = status !== null && (status.state === 'waiting' || status.state === 'later')
  if (!isOpen) return { kind: 'done', reply: null }
  const wrote = (state: string): Op[] => [
    { key, write: 'HSET', args: [id, JSON.stringify({ ...status, state, attempts: status.attempts + 1 })] },
  ]
  const done = [{ lane: name, item }]
  if (outcome === null) {
    const ref = refOf(accountOfItem(item))
    return { kind: 'done', reply: null, ops: wrote('abandoned'), done, events: [{ ref, event: { type: 'abandoned' } }] }
  }
  if (outcome.kind === 'odd') return thrown()
  const forgets = [{ key, fields: [id] }]
  if (outcome.kind === 'delivered') return { kind: 'done', reply: null, ops: wrote('delivered'), done, forgets }
  if (!current) return { kind: 'done', reply: null }
  if (status.attempts + 1 >= ATTEMPTS_MAX) return { kind: 'done', reply: null, ops: wrote('failed'), done, forgets }
  return { kind: 'done', reply: null, ops: wrote('later'), due: [{ lane: name, item, atMs: nowMs + outcome.afterMs }] }
}

function field(key: string, name: string): Fact & { read: 'fields' } {
  return { read: 'fields', key, fields: [name] }
}

/** The shard of a command's account. */
export function shardOfBody({ account }: { account: string }): number {
  return shardOfAccount(account)
}
