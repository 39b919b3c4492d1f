/**
 * contents - the content store as the rest of the service sees it: whole objects in, ranges out, encrypted in between
 *
 * States of an object: being written -> durable, named by no row -> named by a committed row -> removed, by the commit
 * that ends it or by its day. Guarantees: `kept` is returned once the object is on disk (or in S3); a read returns the
 * written bytes or an error; no call rejects.
 */

import { randomBytes } from 'node:crypto'
import type { DiskSpace } from './disk-space.ts'
import { HEAD_BYTES, type ObjectKind, plainSize, planSpan, SALT_BYTES, type Span, sealedSize } from './frame.ts'
import { BrokenObject, type ByteSource, keyOfHead, openAll, sealAll } from './framing.ts'
import {
  type FailureKind,
  type Front,
  type SealedSpan,
  type StorageBackend,
  StorageFailure,
  toStorageFailure,
} from './storage-backend.ts'

/** A write: the names, the key, and the bytes as they come. */
export interface PutOrder {
  /** One object with several names is stored once if the home can do so, and each name can be removed alone. */
  readonly names: readonly string[]
  readonly mailKey: Buffer
  readonly kind: ObjectKind
  readonly source: ByteSource
  /** Its maximum size. */
  readonly bytesMax: number
}

/** `cut` means that its source ended in an error. */
export type PutResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly kind: FailureKind | 'cut'; readonly reason: string }

export interface GetOrder {
  readonly name: string
  readonly mailKey: Buffer
  readonly kind: ObjectKind
  readonly span?: Span
  /** Its first bytes, if they are known from `front`, which saves a request to the home. */
  readonly front?: Front
}

/** `gone`: the object does not exist; `away`: the home does not answer; `broken`: the bytes are not those written. */
export type GetResult =
  | { readonly kind: 'there'; readonly size: number; readonly length: number; readonly pieces: AsyncIterable<Buffer> }
  | { readonly kind: 'gone' | 'away' | 'broken' | 'outside' }

/** An act on an object, for counting. */
export interface ContentAct {
  readonly home: StorageBackend['kind']
  readonly act: 'put' | 'get' | 'remove' | 'sweep'
  readonly result: 'ok' | 'gone' | 'outside' | FailureKind | 'broken' | 'cut'
  readonly ms: number
  readonly bytes: number
  readonly objects: number
}

export interface Contents {
  readonly kind: StorageBackend['kind']
  /** Whether there is room for new mail. */
  readonly hasRoom: boolean
  put(order: PutOrder): Promise<PutResult>
  /**
   * Opens an object, or a part of it. Its pieces end in an error if the bytes are not those written, or the home
   * fails.
   */
  get(order: GetOrder): Promise<GetResult>
  /** The same, whole and in memory. */
  read(order: GetOrder): Promise<Buffer | 'gone' | 'away' | 'broken'>
  /** Writes what is sealed already, as one object. */
  putSealed(name: string, pieces: readonly Buffer[]): Promise<PutResult>
  /** A part of an object as it lies there, in memory. */
  readSealed(name: string, span: SealedSpan): Promise<Buffer | 'gone' | 'away'>
  /** The first bytes of an object and its size, for reads of an object that never changes. */
  front(name: string): Promise<Front | 'gone' | 'away'>
  /** False if the home did not remove them. */
  remove(names: readonly string[]): Promise<boolean>
  /** Objects that were damaged when this process read them: names, the first hundred. */
  readonly damaged: ReadonlySet<string>
  readonly home: StorageBackend
  readonly told: (act: ContentAct) => void
  close(): Promise<void>
}

export interface ContentsDeps {
  readonly home: StorageBackend
  /** Null if the home has no size limit. */
  readonly room: DiskSpace | null
  readonly told: (act: ContentAct) => void
  /** Called for damaged objects, and for a home that fails. */
  readonly warn: (facts: object, text: string) => void
}

/** Dependencies of reads. */
type ReadDeps = ContentsDeps & { readonly noteDamage: (name: string) => void }

const DAMAGED_MAX = 100

/** The store over a home. */
export function makeContents(deps: ContentsDeps): Contents {
  const { home, room, told, warn } = deps
  const damaged = new Set<string>()
  const noteDamage = (name: string): void => {
    if (damaged.size < DAMAGED_MAX) damaged.add(name)
  }
  return {
    damaged,
    kind: home.kind,
    get hasRoom() {
      return room?.hasRoom ?? true
    },
    put: (order) => put(deps, order),
    get: (order) => get({ ...deps, noteDamage }, order),
    read: (order) => readWhole({ ...deps, noteDamage }, order),
    putSealed: (name, pieces) => putSealed(deps, name, pieces),
    readSealed: (name, span) => readSealed(deps, name, span),
    async front(name) {
      const found = await home.front(name, HEAD_BYTES).catch(toStorageFailure)
      if (found === null) return 'gone'
      if ('bytes' in found) return found
      warn({ home: home.kind, name, reason: found.message }, 'Content could not be read')
      return 'away'
    },
    remove: (names) => remove(deps, names),
    home,
    told,
    async close() {
      room?.stop()
      await home.close()
    },
  }
}

async function put({ home, room, told, warn }: ContentsDeps, order: PutOrder): Promise<PutResult> {
  const startedAtMs = performance.now()
  const { names, mailKey, kind, source, bytesMax } = order
  const giveBack = room === null ? nothing : room.reserve(sealedSize(bytesMax))
  let bytes = 0
  const end = (result: ContentAct['result']): void =>
    told({ home: home.kind, act: 'put', result, ms: performance.now() - startedAtMs, bytes, objects: names.length })
  if (giveBack === null) {
    end('full')
    return { ok: false, kind: 'full', reason: 'the disk is nearly full' }
  }
  const heard = { isCut: false }
  try {
    const sealed = sealAll(watched(source, heard), { mailKey, kind, salt: randomBytes(SALT_BYTES) })
    await home.write(
      names,
      counted(sealed, (count) => (bytes += count)),
    )
    end('ok')
    return { ok: true }
  } catch (error) {
    const failure = toStorageFailure(error)
    const why = heard.isCut ? 'cut' : failure.kind
    end(why)
    if (!heard.isCut) warn({ home: home.kind, reason: failure.message }, 'Content could not be written')
    return { ok: false, kind: why, reason: failure.message }
  } finally {
    giveBack(bytes)
  }
}

async function putSealed(
  { home, room, told, warn }: ContentsDeps,
  name: string,
  pieces: readonly Buffer[],
): Promise<PutResult> {
  const startedAtMs = performance.now()
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
  const giveBack = room === null ? nothing : room.reserve(bytes)
  const failure =
    giveBack === null
      ? new StorageFailure('full', 'the disk is nearly full')
      : await home.write([name], inTurn(pieces)).then(() => null, toStorageFailure)
  giveBack?.(failure === null ? bytes : 0)
  const result = failure?.kind ?? 'ok'
  told({ home: home.kind, act: 'put', result, ms: performance.now() - startedAtMs, bytes, objects: 1 })
  if (failure === null) return { ok: true }
  warn({ home: home.kind, reason: failure.message }, 'Content could not be written')
  return { ok: false, kind: failure.kind, reason: failure.message }
}

async function readSealed(
  { home, told, warn }: ContentsDeps,
  name: string,
  span: SealedSpan,
): Promise<Buffer | 'gone' | 'away'> {
  const startedAtMs = performance.now()
  const found = await collect(home.read(name, span)).catch(async (error: unknown) => {
    // A home that is asked for a part of an object that it does not have fails as one that is away does.
    const front = await home.front(name, HEAD_BYTES).catch(toStorageFailure)
    if (front === null) return 'gone'
    warn({ home: home.kind, name, reason: toStorageFailure(error).message }, 'Content could not be read')
    return 'away'
  })
  const isThere = typeof found !== 'string'
  const bytes = isThere ? found.length : 0
  const result = isThere ? 'ok' : found
  told({ home: home.kind, act: 'get', result, ms: performance.now() - startedAtMs, bytes, objects: 1 })
  return found as Buffer | 'gone' | 'away'
}

async function get({ home, told, warn, noteDamage }: ReadDeps, order: GetOrder): Promise<GetResult> {
  const startedAtMs = performance.now()
  const result = await open(home, order).catch((error: unknown): GetResult => {
    const kind = error instanceof BrokenObject ? 'broken' : 'away'
    if (kind === 'broken') noteDamage(order.name)
    warn({ home: home.kind, name: order.name, reason: (error as Error).message }, 'Content could not be read')
    return { kind }
  })
  const isThere = result.kind === 'there'
  told({
    home: home.kind,
    act: 'get',
    result: isThere ? 'ok' : result.kind,
    ms: performance.now() - startedAtMs,
    bytes: isThere ? result.length : 0,
    objects: 1,
  })
  return result
}

async function readWhole(deps: ReadDeps, order: GetOrder): Promise<Buffer | 'gone' | 'away' | 'broken'> {
  const { home, told, warn, noteDamage } = deps
  const found = await get(deps, order)
  if (found.kind !== 'there') return found.kind === 'outside' ? 'broken' : found.kind
  const pieces: Buffer[] = []
  try {
    for await (const piece of found.pieces) pieces.push(piece)
  } catch (error) {
    const kind = error instanceof BrokenObject ? 'broken' : 'away'
    if (kind === 'broken') noteDamage(order.name)
    told({ home: home.kind, act: 'get', result: kind, ms: 0, bytes: 0, objects: 1 })
    warn({ home: home.kind, name: order.name, reason: (error as Error).message }, 'Content could not be read')
    return kind
  }
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}

async function remove({ home, told, warn }: ContentsDeps, names: readonly string[]): Promise<boolean> {
  const startedAtMs = performance.now()
  const failure = await home.remove(names).then(() => null, toStorageFailure)
  const result = failure?.kind ?? 'ok'
  told({ home: home.kind, act: 'remove', result, ms: performance.now() - startedAtMs, bytes: 0, objects: names.length })
  if (failure !== null) warn({ home: home.kind, reason: failure.message }, 'Content could not be removed')
  return failure === null
}

/** Opens an object. Its head gives the key, and its size the position of its frames. */
async function open(
  home: StorageBackend,
  { name, mailKey, kind, span = { from: 0, length: null }, front: known }: GetOrder,
): Promise<GetResult> {
  const front = known ?? (await home.front(name, HEAD_BYTES))
  if (front === null) return { kind: 'gone' }
  const size = plainSize(front.size)
  if (size === null) throw new BrokenObject('It has no size of an object')
  const key = keyOfHead(front.bytes, { mailKey, kind })
  const plan = planSpan(size, span)
  if (plan === null) return { kind: 'outside' }
  const sealed = home.read(name, { from: plan.sealedFrom, length: plan.sealedLength })
  return { kind: 'there', size, length: plan.length, pieces: openAll(sealed, plan, key) }
}

/** Distinguishes the source's own errors from those of the home; the caller already knows its own. */
async function* watched(source: ByteSource, told: { isCut: boolean }): AsyncGenerator<Uint8Array> {
  try {
    yield* source
  } catch (error) {
    told.isCut = true
    throw error
  }
}

async function* counted(pieces: AsyncIterable<Buffer>, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    count(piece.length)
    yield piece
  }
}

async function* inTurn(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces
}

async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return all.length === 1 ? (all[0] as Buffer) : Buffer.concat(all)
}

const nothing = (): void => undefined
