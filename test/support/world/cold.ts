/** cold - the lane of sealed segments over a `World`, with real objects in files of a temporary folder. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PerformedClaim } from '../../../cluster/behaviour.ts'
import { type ColdJob, type ColdOutcome, makePrepareCold } from '../../../src/actors/sealed/cold.ts'
import { type Contents, makeContents } from '../../../src/content/contents.ts'
import { makeFileHome } from '../../../src/content/files.ts'
import { makeColdLane, makeColdOutcome } from '../../../src/content/sealed/cold-lane.ts'
import { makeSealedReader } from '../../../src/content/sealed/reader.ts'
import { SealedSegments } from '../../../src/content/sealed/segment.ts'
import type { ColdDeps } from '../../../src/content/sealed/written.ts'
import { recalledKey, sealedKey, sealedPersonsKey, segmentsKey } from '../../../src/state/keys.ts'
import { BODY_PART } from '../../../src/state/message/content-part.ts'
import { coldName, type SealedRow, unpackSealed } from '../../../src/state/message/sealed.ts'
import { segmentKeys } from '../../../src/state/segment.ts'
import { type ContentStore, readChunks } from '../../../src/store/content.ts'
import type { OutgoingStore } from '../../../src/store/outgoing.ts'
import type { Reader } from '../../../src/views/key.ts'
import type { ReadKeys } from '../../../src/views/read-keys.ts'
import { ringOf } from './rings.ts'
import type { World } from './turn.ts'
import { readerOf } from './world-reader.ts'

export const HOT_DAYS = 7

/** A claim of the lane. */
export type ColdClaim = NonNullable<ReturnType<World['claim']>> & { readonly job: ColdJob }

export class Cold {
  readonly folder = mkdtempSync(join(tmpdir(), 'sendwright-cold-'))
  readonly contents: Contents
  readonly ring = ringOf('cold')
  readonly segments: SealedSegments
  /** Reads the log with its sealed segments. */
  readonly read: Reader
  /** The content of messages: small bodies in the world, the rest in the folder. */
  readonly outgoing: OutgoingStore
  /** How packing bodies ended. */
  readonly packed: string[] = []
  /** How reads of sealed segments ended. */
  readonly reads: string[] = []
  readonly warnings: string[] = []
  readonly #world: World
  readonly #prepare = makePrepareCold(HOT_DAYS)
  readonly #lane

  constructor(world: World, changes: { readonly contents?: (contents: Contents) => Partial<Contents> } = {}) {
    this.#world = world
    const home = makeFileHome(this.folder, { worker: () => 'w' })
    const made = makeContents({ home, room: null, told: () => undefined, warn: () => undefined })
    this.contents = { ...made, hasRoom: true, ...changes.contents?.(made) }
    this.segments = new SealedSegments({ contents: this.contents, ring: this.ring, nowMs: () => world.nowMs })
    const { read } = readerOf(world)
    const readKeys = (async (
      _command: string,
      asked: readonly { key: string; args?: readonly (string | number)[] }[],
    ) =>
      asked.map(({ key, args: [from, to] = [] }) =>
        String(world.string(key) ?? '').slice(Number(from), Number(to) + 1),
      )) as unknown as ReadKeys
    const done = (result: string): void => void this.reads.push(result)
    const warn = (facts: object): void => void this.warnings.push(JSON.stringify(facts))
    this.read = makeSealedReader({ read, readKeys, segments: this.segments, done, warn })
    const log = { info: () => undefined, warn }
    const redis = contentOf(world)
    this.outgoing = { redis, contents: this.contents, ring: this.ring, listed: NO_LISTED }
    const readBody: ColdDeps['readBody'] = (place) => readChunks(redis, { ...place, part: BODY_PART })
    const deps = { readBody, read, contents: this.contents, ring: this.ring, segments: this.segments, log }
    this.#lane = makeColdLane({ ...deps, nowMs: () => world.nowMs, hotDays: HOT_DAYS, done: () => undefined })
  }

  /** Items of the lane that are due, by name. */
  due(): { lane: string; item: string }[] {
    const { nowMs } = this.#world
    return this.#world.deliveries().filter(({ lane, atMs }) => lane.startsWith('cold/') && atMs <= nowMs)
  }

  /** Claims the first item that is due, as `prepare` answers. */
  claim(act: ColdJob['act'] | '' = ''): ColdClaim | null {
    for (const due of this.due().filter(({ item }) => item.startsWith(act))) {
      const claim = this.#world.claim<ColdJob>(this.#prepare, { ...due, atMs: 0 })
      if (claim !== null) return claim as ColdClaim
    }
    return null
  }

  perform(claim: ColdClaim): Promise<ColdOutcome> {
    const signal = new AbortController().signal
    return this.#lane.perform(claim.job, { ...claim, signal } as unknown as PerformedClaim) as Promise<ColdOutcome>
  }

  end(claim: ColdClaim, outcome: ColdOutcome | null): void {
    this.#world.end(makeColdOutcome(this.ring), claim, outcome)
  }

  /**
   * Performs everything that is due, and everything that becomes due within a minute of it. Returns the items, and
   * their ends.
   */
  async settle(): Promise<string[]> {
    const ended: string[] = []
    for (let rounds = 0; rounds < 500; rounds += 1) {
      const claim = this.claim()
      if (claim === null) {
        this.#world.fireTimers()
        if (this.due().length === 0) return ended
        continue
      }
      const outcome = await this.perform(claim)
      this.end(claim, outcome)
      const into = outcome.act === 'pack' ? this.packed : ended
      into.push(`${outcome.act} ${outcome.result}`)
      // The next segment, or pack, of a server has its turn some seconds later.
      this.#world.nowMs += outcome.act === 'seal' ? 5_000 : outcome.act === 'pack' ? 1_000 : 0
    }
    throw new Error(`No end: ${ended.slice(-5).join()}`)
  }

  /** The row of a segment. */
  row(serverId: string, segment: string): SealedRow | null {
    return unpackSealed(this.#world.hash(sealedKey(this.#world.shard, serverId)).get(segment) ?? null)
  }

  /** Segments of a server, oldest first. */
  segmentsOf(serverId: string): string[] {
    return [...this.#world.sorted(segmentsKey(this.#world.shard, serverId)).keys()]
  }

  /** Keys of a segment that Redis still has. */
  hotKeys(serverId: string, segment: string): string[] {
    return segmentKeys(this.#world.shard, serverId, segment).filter((key) => this.#world.keys.has(key))
  }

  recalled(serverId: string, segment: string): number {
    return this.#world.hash(recalledKey(this.#world.shard, serverId, segment)).size
  }

  hasFilter(serverId: string, segment: string): boolean {
    return this.#world.keys.has(sealedPersonsKey(this.#world.shard, serverId, segment))
  }

  /** Names of the objects of segments. */
  objects(): string[] {
    return this.files().filter((name) => name.includes('/cold/'))
  }

  /** Names of the packs of bodies. */
  packs(): string[] {
    return this.files().filter((name) => name.includes('/out/'))
  }

  files(): string[] {
    return readdirSync(this.folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => statSync(join(this.folder, name)).isFile())
      .sort()
  }

  /** Every stored byte of every object. */
  bytes(): Buffer {
    return Buffer.concat(this.files().map((name) => readFileSync(join(this.folder, name))))
  }

  /** The text of every object that a row names, opened with its key. */
  async opened(serverId: string): Promise<string> {
    const texts: string[] = []
    for (const segment of this.segmentsOf(serverId)) {
      const row = this.row(serverId, segment)
      if (row === null || row.generation === 0) continue
      const object = this.segments.open(this.#world.shard, row)
      const { blocks } = await object.tail()
      for (const number of blocks.keys()) texts.push(JSON.stringify(await object.block(number)))
    }
    return texts.join('\n')
  }

  /** The file of the object that a row names. */
  fileOf(row: SealedRow): string {
    return join(this.folder, coldName(this.#world.shard, row))
  }

  async close(): Promise<void> {
    await this.contents.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Messages of broadcasts are not among those of these tests. */
const NO_LISTED = { read: () => Promise.resolve(null) } as unknown as OutgoingStore['listed']

/** Small content as a world holds it. */
function contentOf(world: World): ContentStore {
  const read = (key: string): Buffer | null => {
    const value = world.string(key)
    return value === null ? null : Buffer.from(value)
  }
  return {
    writeContent: () => Promise.reject(new Error('Nothing is written here')),
    readContent: async (_shard, keys) => keys.map(read),
    async readField(_shard, { key, field }) {
      const value = world.hash(key).get(field)
      return value === undefined ? null : Buffer.from(value)
    },
    removeContent: () => Promise.resolve(),
  }
}
