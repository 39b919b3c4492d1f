/**
 * send-at-simulation - scheduled messages of many seeds: no attempt before the time, no recipient delivered twice,
 * none lost, and no attempt at a cancelled message
 *
 * The clock stands still, jumps ahead and goes back, as after a kill, in a takeover and by a correction. Attempts are
 * cut off, and their outcomes arrive late. Meanwhile messages are moved and cancelled by callers with old data, the
 * account is held and resumed, and the operator retries its queue.
 */
import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { pauseAccount, resumeAccount } from '../../../src/actors/account/change-account.ts'
import { type AttemptOutcome, reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { retryLane } from '../../../src/actors/message/operate-queue.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { type OrderScheduledBody, orderScheduled } from '../../../src/actors/message/schedule.ts'
import { makeDeferred, makeDelivered } from '../../../src/mail/outcome.ts'
import { statusKey } from '../../../src/state/keys.ts'
import { parseAttemptItem } from '../../../src/state/message/item.ts'
import { statusField, unpackStatus } from '../../../src/state/message/status.ts'
import { countScheduled } from '../../../src/state/scheduled.ts'
import type { ServerCounters } from '../../../src/state/server.ts'
import { type Chance, makeChance } from '../../simulation/prng.ts'
import {
  acceptedIds,
  BY,
  hmacOf,
  LIVE_KEY,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import { type Claimed, World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const MINUTE_MS = 60_000
const SEEDS = 25
const STEPS = 120
const MESSAGES_MAX = 25
const LANE = 'deliver/example.net'

interface Sent {
  readonly messageId: string
  readonly segment: string
  readonly recipients: number
  /** The time that holds; null: it is cancelled. */
  sendAtMs: number | null
  /** The time that a caller read before, which may have changed since. */
  readMs: number
}

class Run {
  readonly world = new World(NOW_MS)
  readonly sent: Sent[] = []
  readonly violations: string[] = []
  readonly counts = { moved: 0, cancelled: 0, refused: 0, changed: 0, cut: 0 }
  readonly #tenant: Tenant = makeTenant(this.world)
  readonly #chance: Chance
  /** Attempts whose outcome comes later. */
  #late: Claimed<AttemptJob>[] = []

  constructor(seed: number) {
    this.#chance = makeChance(seed)
  }

  step(): void {
    const { world } = this
    const chance = this.#chance
    const draw = chance.below(12)
    if (draw < 2) this.#submit()
    else if (draw < 4) this.#order(world.nowMs - 30_000 + chance.below(40 * MINUTE_MS))
    else if (draw < 5) this.#order(null)
    else if (draw < 6) this.#hold(chance.hit(0.4))
    else if (draw < 7) world.run(retryLane, { lane: LANE, fromMs: world.nowMs })
    // No process runs.
    else if (draw < 8) world.nowMs += chance.below(20 * MINUTE_MS)
    else if (draw < 9) world.nowMs -= chance.below(5_000)
    else for (let n = chance.below(30); n > 0; n -= 1) this.#pass(1 + chance.below(20_000))
    this.#pass(1)
  }

  /** Resumes, lets all time pass, and checks the end of each recipient. */
  end(): void {
    const { world, sent, violations } = this
    this.#hold(false)
    this.#pass(MINUTE_MS, { isPeace: true })
    for (let n = 0; n < 400 && (world.deliveries().length > 0 || this.#late.length > 0); n += 1)
      this.#pass(MINUTE_MS, { isPeace: true })
    for (const { messageId, segment, recipients, sendAtMs } of sent) {
      const key = statusKey(world.shard, this.#tenant.live.serverId, segment)
      for (let recipient = 0; recipient < recipients; recipient += 1) {
        const row = world.hash(key).get(statusField(shortId(messageId), recipient)) ?? null
        const { status, events } = unpackStatus(row, NOW_MS)
        const ends = events.filter(({ event }) => event !== 'deferred').map(({ event }) => event)
        const expected = sendAtMs === null ? 'cancelled' : 'delivered'
        if (status !== expected || ends.length !== 1)
          violations.push(`${messageId} ${recipient} is ${status} after ${ends}, not ${expected}`)
      }
    }
    const counters = world.counters.get(`server:${this.#tenant.live.serverId}`) as ServerCounters | undefined
    const waiting = countScheduled(counters?.scheduled)
    if (waiting !== 0) violations.push(`${waiting} are counted as scheduled`)
  }

  #submit(): void {
    const { world, sent } = this
    const chance = this.#chance
    if (sent.length === MESSAGES_MAX) return
    const recipients = 1 + chance.below(3)
    const to = Array.from({ length: recipients }, (_, n) => makeRecipient(`m${sent.length}-${n}@example.net`))
    const sendAtMs = world.nowMs - 30_000 + chance.below(40 * MINUTE_MS)
    const before = new Set(world.deliveries().map(({ item }) => item))
    const reply = send(world, this.#tenant, { messages: [makeItem({ recipients: to, sendAtMs })] })
    // The account is paused.
    if (reply.kind !== 'accepted') return
    const [messageId = ''] = acceptedIds(reply)
    const due = world.deliveries().find(({ item }) => !before.has(item))
    if (due === undefined) throw new Error('The message does not wait')
    const { segment } = parseAttemptItem(due.item)
    sent.push({ messageId, segment, recipients, sendAtMs, readMs: sendAtMs })
  }

  /** Moves or cancels one message, in part with the time that was read before another order. */
  #order(sendAtMs: number | null): void {
    const { world, sent, counts } = this
    if (sent.length === 0) return
    const one = this.#chance.pick(sent)
    const isStale = this.#chance.hit(0.2)
    if (!isStale && one.sendAtMs !== null) one.readMs = one.sendAtMs
    const reply = world.run(orderScheduled, this.#orderOf(one, sendAtMs))
    if (reply.kind === 'refused') counts.refused += 1
    else if (reply.kind === 'changed') {
      counts.changed += 1
      if (one.readMs === one.sendAtMs) this.violations.push(`${one.messageId} has not changed`)
    } else {
      counts[sendAtMs === null ? 'cancelled' : 'moved'] += 1
      if (this.#late.some(({ item }) => parseAttemptItem(item).messageId === one.messageId) && one.sendAtMs !== null)
        this.violations.push(`${one.messageId} obeys an order although an attempt is in flight`)
      one.sendAtMs = sendAtMs
    }
  }

  #orderOf({ messageId, segment, recipients, readMs }: Sent, sendAtMs: number | null): OrderScheduledBody {
    const { accountId, live } = this.#tenant
    const lanes = Array.from({ length: recipients }, () => [LANE])
    const of = { contentId: '', hasAttachments: false, broadcastStreamId: null }
    const message = { messageId, segment, ...of, sendAtMs: readMs, lanes }
    const { serverId } = live
    return { accountId, serverId, orderedBy: 'server', keyHash: LIVE_KEY, test: false, sendAtMs, message }
  }

  #hold(isHeld: boolean): void {
    const of = { accountId: this.#tenant.accountId, by: BY }
    if (isHeld) this.world.run(pauseAccount, { ...of, hold: true })
    else this.world.run(resumeAccount, of)
  }

  /** Lets time pass: timers fire, and a process claims what is due. */
  #pass(ms: number, { isPeace = false } = {}): void {
    const { world } = this
    const chance = this.#chance
    world.nowMs += ms
    world.fireTimers()
    const late = this.#late.filter(() => isPeace || chance.hit(0.3))
    this.#late = this.#late.filter((one) => !late.includes(one))
    for (const claim of late) world.end(attemptOutcome, claim, this.#outcome(isPeace))
    for (const due of world.deliveries()) {
      const isFree = due.claimedUntilMs === undefined || due.claimedUntilMs <= world.nowMs
      if (due.atMs > world.nowMs || !isFree) continue
      const claim = world.claim(prepareAttempt, due)
      if (claim === null) continue
      this.#checkAttempt(due.item)
      const draw = isPeace ? 1 : chance.next()
      if (draw < 0.15) this.counts.cut += 1
      else if (draw < 0.35) this.#late.push(claim)
      else world.end(attemptOutcome, claim, this.#outcome(isPeace))
    }
  }

  #checkAttempt(item: string): void {
    const { messageId } = parseAttemptItem(item)
    const one = this.sent.find((each) => each.messageId === messageId)
    if (one === undefined || one.sendAtMs === null) this.violations.push(`${messageId} is tried after it was cancelled`)
    else if (this.world.nowMs < one.sendAtMs)
      this.violations.push(`${messageId} is tried ${one.sendAtMs - this.world.nowMs} ms early`)
  }

  #outcome(isPeace: boolean): AttemptOutcome {
    const outcome =
      isPeace || this.#chance.hit(0.7)
        ? makeDelivered(250, '250 2.0.0 Ok')
        : makeDeferred('conn', 'NoAnswerFromHost', 'connect ETIMEDOUT')
    const hmac = () => hmacOf('ada@example.net')
    const { streamId } = this.#tenant.live
    return reportOutcome(outcome, { address: 'ada@example.net', sizeBytes: 900, retryAfterMs: null, streamId, hmac })
  }
}

t.test('send at: messages never early, never twice, never lost [send.at, message.cancel]', async (t) => {
  const counts = { moved: 0, cancelled: 0, refused: 0, changed: 0, cut: 0 }
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const run = new Run(seed)
    for (let n = 0; n < STEPS; n += 1) run.step()
    run.end()
    t.same(run.violations, [], `seed ${seed}`)
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += run.counts[name]
  }
  t.ok(
    Object.values(counts).every((count) => count > 3),
    JSON.stringify(counts),
  )
})
