/**
 * remote-ask - commands to shards that another process owns: into their mailbox, and the reply out of the store.
 *
 * Asks for one shard that gather are one parcel, until it is full, and parcels due together are one request to the
 * store: at the end of a turn of the loop, or when a request is answered. While a parcel of a shard is unanswered, asks
 * for that shard gather for its next one: requests, commits and replies each cost something that more share, and while
 * one shard's asks are decided another's are answered. So do all asks while two requests are under way. The commit
 * publishes the reply. Published replies can be lost, so the store is asked as well: half a second after the request,
 * for all of its parcels together, and again until the deadlines have passed.
 *
 * Guarantees: an enqueue whose reply was lost is never sent again; `unavailable` is returned only when the store itself
 * reports that the deadline has passed and there is no reply, because no commit can make the command true after that.
 */
import type { Command, CommandType, Wire } from '../behaviour.ts'
import type { Clock } from '../clock.ts'
import { newCmdId } from '../cmd-id.ts'
import { PARCEL_COMMANDS_MAX, type PackedCommand, packCommand, packParcel } from '../mailbox/parcel.ts'
import { parseResults, parseTold, sliceOf } from '../mailbox/replies.ts'
import type { Parcel, Store } from '../store.ts'
import type { AskResult } from '../work.ts'

/** Commands that wait in a mailbox; the parcel that reaches it may go beyond. */
const MAILBOX_MAX = 2_000
/** Bytes of a parcel; one command may be larger. */
const BYTES_MAX = 1_048_576
/** Asks of one process that wait. */
const ASKS_MAX = 20_000
const LOOK_MS = 500
/** Number of requests in flight from which asks are gathered. */
const UNDER_WAY_MAX = 2
/** Maximum wait of an ask for earlier ones, which it may wait twice, for a parcel and for requests. */
const GATHER_MS = 5
/** Lookups that are due within this time are combined. */
const GRAIN_MS = 20
/** A lookup this long after the deadline finds that it has passed. */
const PAST_MS = 5
/** A reply is certainly still stored this long after the deadline; later its absence proves nothing. */
const REPLY_KEPT_MS = 30_000
/** Lookups of an answer end after this time. */
const GIVE_UP_MS = 34_000

export type RemoteAnswer = (result: AskResult) => void

export interface RemoteAsk {
  readonly shard: number
  readonly type: CommandType
  readonly command: Command
  /** By the store's clock. */
  readonly deadlineMs: number
}

interface Deps {
  readonly store: Store
  readonly clock: Clock
  readonly worker: string
  readonly random: () => number
  /** This long after a deadline no commit can make the command true, by any store's clock. */
  readonly pastMs?: number | undefined
}

const UNAVAILABLE: AskResult = { kind: 'unavailable' }
const SILENT: AskResult = { kind: 'silent' }

/** The contents of one request. */
interface Turn {
  readonly parcels: readonly OpenParcel[]
  readonly sentAtMs: number
}

/** Asks for the owner of one shard. */
interface Line {
  /** Parcels that are filled, the last one still; not sent. */
  parcels: OpenParcel[]
  /** Parcels that were sent and have asks that wait. */
  unanswered: number
  cancelWait: () => void
}

/** The asks of this process that wait for other processes. */
export class RemoteAsks {
  private readonly deps: Deps
  private readonly open = new Map<string, OpenParcel>()
  /** By shard. */
  private readonly lines = new Map<number, Line>()
  private readonly looks = new LookList<Turn>()
  private lookAtMs = Number.POSITIVE_INFINITY
  private cancelLook: () => void = () => undefined
  private waiting = 0
  /** The contents of the next request. */
  private readonly due = new Set<Line>()
  private cancelSend: () => void = () => undefined
  /** Requests under way. */
  private underWay = 0

  constructor(deps: Deps) {
    this.deps = deps
  }

  /** Asks that wait for their answer. */
  get size(): number {
    return this.waiting
  }

  /** Replies as they were reported, one line for each parcel. A malformed reply is looked for like a lost one. */
  heard(text: string): void {
    for (const line of text.split('\n')) {
      const told = parseTold(line)
      if (told !== null) this.open.get(told.parcelId)?.settle(told.from, told.results)
    }
  }

  /** Sends a command to the owner of its shard; `answer` is called once. */
  ask({ shard, type: { wire }, command, deadlineMs }: RemoteAsk, answer: RemoteAnswer): void {
    if (this.waiting >= ASKS_MAX) {
      answer(UNAVAILABLE)
      return
    }
    const said = wire === undefined ? command : { ...command, body: wire.pack(command.body) }
    const packed = packCommand(said, deadlineMs)
    this.waiting += 1
    const line = this.lineOf(shard)
    let parcel = line.parcels[line.parcels.length - 1]
    if (parcel?.hasRoom(packed) !== true) {
      if (parcel === undefined) this.wait(line)
      parcel = this.begin(shard, line)
    }
    parcel.add(packed, deadlineMs, wire === undefined ? answer : (result) => answer(unpacked(result, wire)))
  }

  private lineOf(shard: number): Line {
    let line = this.lines.get(shard)
    if (line === undefined) {
      line = { parcels: [], unanswered: 0, cancelWait: () => undefined }
      this.lines.set(shard, line)
    }
    return line
  }

  /** The first ask has come since the last request took all gathered ones. */
  private wait(line: Line): void {
    if (line.unanswered === 0) this.sendSoon(line)
    else line.cancelWait = this.deps.clock.after(GATHER_MS, () => this.sendSoon(line))
  }

  private begin(shard: number, line: Line): OpenParcel {
    const { clock, random } = this.deps
    const id = newCmdId(clock.nowMs(), random)
    const parcel = new OpenParcel(shard, id, (isLast) => {
      this.waiting -= 1
      if (!isLast) return
      this.open.delete(id)
      line.unanswered -= 1
      // Asks gathered in the meantime are sent with those that the answers cause.
      if (line.parcels.length > 0 && line.unanswered === 0) this.sendSoon(line)
    })
    this.open.set(id, parcel)
    line.parcels.push(parcel)
    return parcel
  }

  /** Sends at the end of this turn of the loop if few requests are in flight, together with all others due then. */
  private sendSoon(line: Line): void {
    const isFirst = this.due.size === 0
    this.due.add(line)
    const waitMs = this.underWay < UNDER_WAY_MAX ? 0 : GATHER_MS
    if (isFirst) this.cancelSend = this.deps.clock.after(waitMs, () => void this.send())
  }

  private async send(): Promise<void> {
    const { store, clock, worker } = this.deps
    const parcels: OpenParcel[] = []
    for (const line of this.due) {
      line.cancelWait()
      line.unanswered += line.parcels.length
      parcels.push(...line.parcels)
      line.parcels = []
    }
    this.due.clear()
    this.lookAfter({ parcels, sentAtMs: clock.monotonicMs() }, LOOK_MS)
    const packed = parcels.map((parcel) => parcel.packed())
    this.underWay += 1
    const sent = await store.enqueue({ replyTo: worker, commandsMax: MAILBOX_MAX, parcels: packed })
    this.underWay -= 1
    if (this.due.size > 0) {
      this.cancelSend()
      void this.send()
    }
    parcels.forEach((parcel, place) => {
      if (sent[place] === 'busy' || sent[place] === 'unsent') parcel.settleOpen(() => UNAVAILABLE)
    })
  }

  private lookAfter(turn: Turn, ms: number): void {
    this.looks.add(turn, this.deps.clock.monotonicMs() + ms)
    this.arm()
  }

  /** One timer for all: set again only if it would fire too late. */
  private arm(): void {
    const { nextMs } = this.looks
    if (nextMs >= this.lookAtMs) return
    const { clock } = this.deps
    const atMs = clock.monotonicMs()
    this.cancelLook()
    this.lookAtMs = Math.max(nextMs, atMs + GRAIN_MS)
    this.cancelLook = clock.after(this.lookAtMs - atMs, () => {
      this.lookAtMs = Number.POSITIVE_INFINITY
      // A timer may fire slightly early.
      for (const turn of this.looks.due(clock.monotonicMs() + 1)) if (turn.parcels.some(isOpen)) void this.look(turn)
      this.arm()
    })
  }

  private async look({ parcels, sentAtMs }: Turn): Promise<void> {
    const { store, clock } = this.deps
    const asked = parcels.filter(isOpen)
    const names = asked.map(({ shard, id }) => ({ shard, parcelId: id, slice: sliceOf(id) }))
    const found = await store.replies(names)
    const isGivenUp = clock.monotonicMs() - sentAtMs >= GIVE_UP_MS
    const { pastMs = PAST_MS } = this.deps
    let leftMs = LOOK_MS
    for (const [place, parcel] of asked.entries()) {
      const seen = found[place] ?? null
      const nowMs = seen?.nowMs ?? 0
      if (seen !== null) parcel.settle(0, parseResults(seen.fields))
      parcel.settleOpen((deadlineMs) => {
        const isPast = nowMs > deadlineMs + pastMs - PAST_MS
        if (nowMs > deadlineMs + REPLY_KEPT_MS || (!isPast && isGivenUp)) return SILENT
        if (isPast) return UNAVAILABLE
        if (seen !== null) leftMs = Math.min(leftMs, deadlineMs - nowMs + pastMs)
        return null
      })
    }
    const left = asked.filter(isOpen)
    if (left.length === 0) return
    this.looks.add({ parcels: left, sentAtMs }, clock.monotonicMs() + leftMs)
    this.arm()
  }
}

class OpenParcel {
  readonly shard: number
  readonly id: string
  left = 0
  private readonly settled: (isLast: boolean) => void
  private commands: PackedCommand[] = []
  private bytes = 0
  private readonly asks: ({ readonly deadlineMs: number; readonly answer: RemoteAnswer } | null)[] = []

  constructor(shard: number, id: string, settled: (isLast: boolean) => void) {
    this.shard = shard
    this.id = id
    this.settled = settled
  }

  hasRoom({ bytes }: PackedCommand): boolean {
    return this.asks.length < PARCEL_COMMANDS_MAX && this.bytes + bytes <= BYTES_MAX
  }

  add(packed: PackedCommand, deadlineMs: number, answer: RemoteAnswer): void {
    this.commands.push(packed)
    this.bytes += packed.bytes
    this.asks.push({ deadlineMs, answer })
    this.left += 1
  }

  /** Parcels as the store takes them; the content of the commands is not kept here. */
  packed(): Parcel {
    const { shard, id, commands } = this
    this.commands = []
    return { shard, parcelId: id, count: commands.length, said: packParcel(id, commands) }
  }

  settle(from: number, results: readonly AskResult[]): void {
    for (let place = 0; place < results.length; place += 1) this.end(from + place, results[place]!)
  }

  /** Ends the asks for which `resultOf` has a result. */
  settleOpen(resultOf: (deadlineMs: number) => AskResult | null): void {
    for (let place = 0; place < this.asks.length; place += 1) {
      const ask = this.asks[place]
      const result = ask === null || ask === undefined ? null : resultOf(ask.deadlineMs)
      if (result !== null) this.end(place, result)
    }
  }

  private end(place: number, result: AskResult): void {
    const ask = this.asks[place]
    if (ask === null || ask === undefined) return
    this.asks[place] = null
    this.left -= 1
    this.settled(this.left === 0)
    ask.answer(result)
  }
}

/** A result as its behaviour gave it. The content of an unreadable reply is unknown. */
function unpacked(result: AskResult, wire: Wire): AskResult {
  try {
    return result.kind === 'answer' ? { kind: 'answer', reply: wire.unpackReply(result.reply) } : result
  } catch {
    return SILENT
  }
}

function isOpen({ left }: OpenParcel): boolean {
  return left > 0
}

/** Items by due time; most are added in order, and few are still wanted when they are due. */
export class LookList<Item> {
  private list: { readonly item: Item; readonly atMs: number }[] = []

  /** When the first is due; Infinity if none. */
  get nextMs(): number {
    return this.list[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  add(item: Item, atMs: number): void {
    let place = this.list.length
    while (place > 0 && this.list[place - 1]!.atMs > atMs) place -= 1
    if (place === this.list.length) this.list.push({ item, atMs })
    else this.list.splice(place, 0, { item, atMs })
  }

  /** Removes the entries due at a time, in order. */
  due(atMs: number): Item[] {
    let count = 0
    while (count < this.list.length && this.list[count]!.atMs <= atMs) count += 1
    return count === 0 ? [] : this.list.splice(0, count).map(({ item }) => item)
  }
}
