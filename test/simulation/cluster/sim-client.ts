/**
 * sim-client - the connection of an order to one node of an in-memory cluster, with the part of Redis that
 * `cluster/slots/` uses
 *
 * Each command waits until the scheduler executes it. Sizes and settings are returned at once, because no decision
 * depends on them.
 */
import { pauseBy, type Waits } from '../../../cluster/clock.ts'
import { copyKey, fencedKey, metaKey } from '../../../cluster/keyspace.ts'
import { CLEAR } from '../../../cluster/slots/clear-slot.ts'
import { RESTORE } from '../../../cluster/slots/copy-keys.ts'
import { FREE, TAKE } from '../../../cluster/slots/move-fence.ts'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { SWITCH } from '../../../cluster/slots/switch-slot.ts'
import type { Snapshot } from '../sim-store.ts'
import { nodesAt, nodesAtReplica } from './nodes-text.ts'
import type { SimCluster } from './sim-cluster.ts'
import type { SimNode } from './sim-node.ts'

/** So large is every key: some go over at once, not all. */
const KEY_BYTES = 60_000
const FENCED_MS = 3_600_000

/** The contents of a key that a node has dumped. */
const PACKED = new WeakMap<object, Kept>()

type Kept = NonNullable<ReturnType<Snapshot['get']>>

export interface ClientOptions {
  readonly node: SimNode
  /** It talks to a replica of the node. */
  readonly isReplica: boolean
  readonly cluster: SimCluster
  readonly shard: number
  readonly clock: Waits
  /** Executes a command at some time, or reports that the connection has ended. */
  send<Value>(client: SimClient, what: string, run: () => Value): Promise<Value>
}

type Word = string | number | Buffer

export class SimClient {
  readonly node: SimNode
  protected readonly cluster: SimCluster
  protected readonly shard: number
  /** Another order has ended it. */
  isEnded = false
  private readonly options: ClientOptions
  /** Keys that are asked for in one write. */
  private packing: { readonly names: Set<string>; readonly packed: Promise<Snapshot> } | null = null

  constructor(options: ClientOptions) {
    this.options = options
    this.node = options.node
    this.cluster = options.cluster
    this.shard = options.shard
  }

  /** No node answers there. A replica is present while its primary is lost. */
  get isGone(): boolean {
    return this.node.state === 'down' && !this.options.isReplica
  }

  hmget(_key: string, ...names: string[]): Promise<(string | null)[]> {
    return this.send('HMGET', () => {
      this.mustHold()
      return names.map((name) => this.meta().get(name) ?? null)
    })
  }

  exists(name: string): Promise<number> {
    return this.send('EXISTS', () => {
      this.mustHold()
      return this.has(name)
    })
  }

  async config(): Promise<string> {
    return 'OK'
  }

  async ping(): Promise<string> {
    return 'PONG'
  }

  async info(): Promise<string> {
    return 'slave0:ip=127.0.0.1,port=1,state=online,offset=1,lag=0\r\n'
  }

  async wait(_count: number, ms: number): Promise<number> {
    const replicate = (): number => Number(this.cluster.replicate(this.node))
    if ((await this.send('WAIT', replicate)) > 0) return 1
    await pauseBy(this.options.clock, ms)
    return this.send('WAIT', replicate)
  }

  async hset(_key: string, field: string, value: string): Promise<void> {
    await this.send('HSET', () => this.noteUncleared(field, value))
  }

  async hdel(_key: string, field: string): Promise<void> {
    await this.send('HDEL', () => this.noteUncleared(field, ''))
  }

  eval(script: string, _count: number, ...words: Word[]): Promise<number> {
    const args = words.map(String)
    const [first = '', second = '', third = '', fourth = '', fifth = ''] = args
    if (script === TAKE) return this.send('FENCE', () => this.fence({ saw: third, token: fourth, owner: fifth }))
    if (script === FREE) return this.send('FREE', () => this.free(third, args[5] ?? ''))
    if (script !== SWITCH) throw new Error('Nobody runs this script here')
    return this.send('SWITCH', () => {
      if (this.node.base.nowMs > Number(third)) return 0
      this.setSlot('NODE', second)
      return Number(first) === SHARD_SLOTS[this.shard] ? 1 : 0
    })
  }

  async call(...words: Word[]): Promise<unknown> {
    const [name = '', sub = ''] = words.map(String)
    if (name === 'MEMORY') return KEY_BYTES
    if (name === 'PEXPIRETIME') return (await this.pack(sub))?.expiresAtMs ?? -2
    if (name === 'TIME') return this.send('TIME', () => this.time())
    return this.send(`${name} ${sub}`, () => this.clusterSays(words.map(String)))
  }

  async callBuffer(word: string, name: Word): Promise<Buffer[] | Buffer | null> {
    if (word === 'CLUSTER') return this.send('GETKEYSINSLOT', () => this.names().map((one) => Buffer.from(one)))
    const kept = await this.pack(String(name))
    if (kept === undefined) return null
    const payload = Buffer.from('packed')
    PACKED.set(payload, kept)
    return payload
  }

  /** Commands for a slot that the node takes in, all in one write. */
  pipeline(): SimPipeline {
    return new SimPipeline((commands) =>
      this.send(String(commands[0]?.[0] ?? 'nothing'), () =>
        commands.flatMap((command) => [[null, 'OK'], this.asking(command)]),
      ),
    )
  }

  protected send<Value>(what: string, run: () => Value): Promise<Value> {
    return this.options.send(this, what, run)
  }

  protected fence({ saw, token, owner }: { saw: string; token: string; owner: string }): number {
    this.mustHold()
    const meta = this.meta()
    if ((meta.get('tok') ?? '') !== saw) return 0
    const left = `${meta.get('seq') ?? '0'} ${meta.get('last') ?? ''}`
    const expiresAtMs = this.node.base.nowMs + FENCED_MS
    if (saw !== '')
      this.node.put(new Map([[fencedKey(this.shard, saw), { value: { kind: 'text', text: left }, expiresAtMs }]]))
    this.setMeta({ owner, tok: token, seq: meta.get('seq') ?? '0' })
    if (this.node.heir === null) this.cluster.watch.begins(this.node, { shard: this.shard, token })
    return 1
  }

  protected free(token: string, uncleared: string): number {
    this.mustHold()
    if (this.meta().get('tok') !== token) return 0
    if (this.node.heir === null) this.cluster.watch.ends(this.node, this.shard)
    this.remove([copyKey(this.shard)])
    this.setMeta({ owner: '', freed: String(this.node.base.nowMs), uncleared })
    this.node.base.tellReleased(this.shard)
    return 1
  }

  /** A key as it is at the time when all keys of the request are dumped. */
  private async pack(name: string): Promise<Kept | undefined> {
    if (this.packing === null) {
      const names = new Set<string>()
      const packed = this.send('DUMP', () => {
        this.packing = null
        this.mustHold()
        return this.node.base.copyOf(names)
      })
      this.packing = { names, packed }
    }
    this.packing.names.add(name)
    return (await this.packing.packed).get(name)
  }

  private time(): [string, string] {
    const ms = this.node.base.nowMs
    return [String(Math.floor(ms / 1_000)), String((ms % 1_000) * 1_000)]
  }

  private noteUncleared(field: string, value: string): void {
    this.mustHold()
    this.setMeta({ [field]: value })
  }

  protected clusterSays([, sub, , how, id]: readonly string[]): unknown {
    const { cluster, node } = this
    const { isReplica } = this.options
    const known = isReplica ? cluster.knownAtReplica(node) : cluster.knownEpoch(node)
    switch (sub) {
      case 'NODES':
        return isReplica ? nodesAtReplica(cluster, node) : nodesAt(cluster, node)
      case 'INFO':
        return `cluster_state:${node.heir === null ? 'ok' : 'fail'}\r\ncluster_current_epoch:${known}\r\n`
      case 'BUMPEPOCH':
        return isReplica ? cluster.bumpReplica(node) : cluster.bumpEpoch(node)
      case 'COUNTKEYSINSLOT':
        return this.names().length
      case 'SETSLOT':
        return this.setSlot(how ?? '', id ?? '')
      default:
        throw new Error(`Nobody asks for CLUSTER ${sub} here`)
    }
  }

  private setSlot(how: string, id: string): string {
    const { cluster, node, shard } = this
    if (node.state === 'deposed') throw new Error('ERR You can use SETSLOT only with masters.')
    if (how === 'IMPORTING' && node.shards.has(shard)) throw new Error("ERR I'm already the owner of hash slot")
    if (how === 'IMPORTING') node.importing.add(shard)
    else if (how === 'STABLE') node.importing.delete(shard)
    else if (id === node.id) cluster.switchSlot(node, shard)
    cluster.watch.look()
    return 'OK'
  }

  private asking([name = '', ...words]: readonly Word[]): [Error | null, unknown] {
    const { node, shard } = this
    const args = words.map(String)
    if (node.state === 'deposed' || !(node.importing.has(shard) || node.shards.has(shard))) return [this.moved(), null]
    switch (name) {
      case 'EXISTS':
        return [null, this.has(args[0] ?? '')]
      case 'HGET':
        return [null, this.meta().get(args[1] ?? '') ?? null]
      case 'SET':
        node.put(new Map([[args[0] ?? '', { value: { kind: 'text', text: args[1] ?? '' }, expiresAtMs: 0 }]]))
        break
      case 'UNLINK':
        this.remove(args)
        break
      // A key that is gone from the primary is removed from the replicas too.
      case 'EVAL':
        if (args[0] === CLEAR) this.remove(args.slice(2))
        else if (args[0] === RESTORE) this.restore(words.slice(2))
        else throw new Error('Nobody runs this script here')
    }
    this.cluster.watch.look()
    return [null, 1]
  }

  private restore(words: readonly Word[]): void {
    const keys: Snapshot = new Map()
    for (let at = 0; at < words.length; at += 3) {
      const kept = PACKED.get(words[at + 2] as Buffer)
      if (kept === undefined) throw new Error('ERR Bad data format')
      keys.set(String(words[at]), { ...kept, expiresAtMs: Number(words[at + 1]) })
    }
    this.node.put(keys)
  }

  /** A replica has also what its primary has removed for itself alone. */
  private names(): string[] {
    const { node, options, shard } = this
    return options.isReplica ? node.namesAtReplica(shard) : node.base.namesOf(shard)
  }

  private remove(names: readonly string[]): void {
    this.node.put(new Map(names.map((name) => [name, undefined])))
  }

  private has(name: string): number {
    return this.node.base.namesOf(this.shard).includes(name) ? 1 : 0
  }

  private meta(): ReadonlyMap<string, string> {
    return this.node.metaOf(this.shard)
  }

  protected setMeta(fields: Readonly<Record<string, string>>): void {
    const value = { kind: 'hash' as const, fields: new Map([...this.meta(), ...Object.entries(fields)]) }
    const keys: Snapshot = new Map([[metaKey(this.shard), { value, expiresAtMs: 0 }]])
    this.node.put(keys)
  }

  /** Only who holds a slot answers for it. */
  private mustHold(): void {
    if (this.node.state === 'deposed' || !this.node.shards.has(this.shard)) throw this.moved()
  }

  private moved(): Error {
    return new Error(`MOVED ${SHARD_SLOTS[this.shard]} ${this.cluster.at(this.shard).name}`)
  }
}

/** Commands for a slot, each after its ASKING. */
class SimPipeline {
  private readonly commands: Word[][] = []
  private readonly run: (commands: readonly Word[][]) => Promise<unknown[]>

  constructor(run: (commands: readonly Word[][]) => Promise<unknown[]>) {
    this.run = run
  }

  call(...words: Word[]): this {
    if (words[0] !== 'ASKING') this.commands.push(words)
    return this
  }

  exec(): Promise<unknown[]> {
    return this.run(this.commands)
  }
}
