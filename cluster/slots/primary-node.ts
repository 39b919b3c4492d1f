/**
 * primary-node - one primary of a Redis Cluster: its store, its clock, its gate, notifications about its shards
 *
 * A pulse each second asks for its time, over the connection of the commits: that connection is then known to answer,
 * and the shards there go by this clock. No other command is sent to it before its first answer.
 */

import { type Clock, makeClock } from '../clock.ts'
import type { Durability } from '../embedded/binary.ts'
import { AnswerTimes } from '../primaries.ts'
import { RedisLink, type Sending, type StoreAnswer } from '../redis/link.ts'
import { StoreRefused } from '../redis/settings.ts'
import { RedisStore } from '../redis/store.ts'
import { listenToRedis } from '../redis/subscriber.ts'
import type { Listening, Receivers } from '../store.ts'
import { ReplicaGate } from './gate.ts'
import type { NodeEvents, ShardNode } from './shard-node.ts'
import { ShardSubscriber } from './shard-subscriber.ts'

const PULSE_MS = 1_000
/** Maximum age of an unanswered pulse. */
const SILENT_MS = 1_500
/** If a pulse waits this long, the connection is given up, as for a heartbeat. */
const PULSE_SILENT_MS = 10_000
/** A pair of the gate waits a second for replicas. */
const GATE_SILENT_MS = 5_000
/** With two replicas one may be away. */
const REPLICAS_WANTED = 1

export interface PrimaryNodeOptions {
  /** In the form of a store address, with scheme, user and password of the seeds, host and port of this node. */
  readonly address: string
  /** `host:port`. */
  readonly name: string
  readonly durability: Durability
  readonly events: NodeEvents
  /** Sends a redirected command to the right node; null if the refusal is not a redirection. */
  sendOn(refusal: string, sending: Sending): Promise<StoreAnswer> | null
}

export class PrimaryNode implements ShardNode {
  readonly name: string
  readonly store: RedisStore
  readonly clock: Clock = makeClock()
  /** Why it is not used, if its settings break the durability level. */
  refusal: string | null = null
  private readonly times = new AnswerTimes(performance.now())
  private readonly options: PrimaryNodeOptions
  private isPulsing = false
  private readonly gateLink: RedisLink | null
  private readonly gate: ReplicaGate | null
  private readonly timer: NodeJS.Timeout
  private ears: ShardSubscriber | null = null
  private isSet = false
  private isClosed = false

  constructor(options: PrimaryNodeOptions) {
    this.options = options
    this.name = options.name
    const { address, durability, events, sendOn } = options
    this.store = new RedisStore({
      address,
      durability,
      cluster: { moved: () => events.moved(), sendOn },
      onUp: () => void this.pulse(),
      onDown: () => {
        this.isSet = false
        events.onDown()
      },
      onRefused: (error) => this.refuse(error),
    })
    const gateLink = (): RedisLink =>
      new RedisLink({ address, name: 'gate', silentMsMax: GATE_SILENT_MS, prepare: async () => undefined })
    this.gateLink = durability === 'replica' ? gateLink() : null
    this.gate = this.gateLink === null ? null : new ReplicaGate(this.gateLink, REPLICAS_WANTED)
    this.timer = setInterval(() => void this.pulse(), PULSE_MS)
    this.timer.unref()
    // Opening the cluster waits for all nodes; only its shards wait for a later one.
    this.store.ready().catch((error: Error) => {
      if (error instanceof StoreRefused) this.refuse(error)
    })
  }

  /** As an address of a store. */
  get address(): string {
    return this.options.address
  }

  /** Whether its clock is known and commits can be sent. */
  get isUp(): boolean {
    return this.isSet && this.store.connected
  }

  get isSilent(): boolean {
    return performance.now() - this.answeredAtMs > SILENT_MS
  }

  get answeredAtMs(): number {
    return Math.max(this.times.lastMs, this.store.answeredAtMs)
  }

  get steadySinceMs(): number {
    return this.times.sinceMs
  }

  /** Resolves when the required number of replicas have everything written here so far. False if unknown. */
  kept(): Promise<boolean> {
    return this.gate?.pass() ?? Promise.resolve(true)
  }

  /** Whether answers wait for replicas. */
  get isGated(): boolean {
    return this.gate !== null
  }

  /** Receives these channels of its shards, and no others. */
  hear(channels: ReadonlySet<string>): void {
    if (this.isClosed || (this.ears === null && channels.size === 0)) return
    const { address, events } = this.options
    this.ears ??= new ShardSubscriber({
      address,
      held: (channel) => events.held(channel),
      heard: (channel, message) => events.heard(channel, message),
    })
    this.ears.want(channels)
  }

  listen(worker: string, ears: Receivers): Listening {
    return listenToRedis(this.options.address, worker, ears)
  }

  nodes(): Promise<string | null> {
    return this.store.views.call('CLUSTER', 'NODES').then(String, () => null)
  }

  depose(): void {
    this.store.cut(true)
    this.gateLink?.cut()
  }

  close(): void {
    this.isClosed = true
    clearInterval(this.timer)
    this.ears?.close()
    this.gateLink?.close()
    this.store.close()
  }

  private refuse(error: Error): void {
    this.refusal = error.message
    this.options.events.onRefused(error)
  }

  /** Asks for its time. */
  private async pulse(): Promise<void> {
    if (this.isPulsing || this.isClosed) return
    this.isPulsing = true
    const sentAtMs = performance.now()
    const giveUp = setTimeout(() => setImmediate(() => this.isPulsing && this.store.cut(false)), PULSE_SILENT_MS)
    const answer = await this.store.askBeside('TIME')
    clearTimeout(giveUp)
    this.isPulsing = false
    if (answer.kind !== 'reply' || this.isClosed) return
    const [seconds, micros] = answer.value as [string, string]
    this.clock.set(Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000), sentAtMs)
    this.times.note(performance.now())
    if (this.isSet) return
    this.isSet = true
    this.refusal = null
    this.options.events.onUp()
  }
}
