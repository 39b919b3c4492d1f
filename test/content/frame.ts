/**
 * Objects of the content store: sealed and read back, by ranges, in pieces of any size; and every change is detected.
 */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  FRAME_BYTES,
  HEAD_BYTES,
  type ObjectKind,
  plainSize,
  planSpan,
  SALT_BYTES,
  SEALED_FRAME_BYTES,
  type Span,
  sealedSize,
} from '../../src/content/frame.ts'
import { BrokenObject, keyOfHead, openAll, sealAll } from '../../src/content/framing.ts'
import { makeMailKey } from '../../src/content/mail-key.ts'
import { openMailKey } from '../../src/state/ring/sealing.ts'
import { ringOf } from '../support/world/rings.ts'

const SIZES = [0, 1, 1000, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES, 3 * FRAME_BYTES + 7]
const mailKey = randomBytes(32)
const WHOLE: Span = { from: 0, length: null }

async function seal(bytes: Buffer, kind: ObjectKind = 'files', piece = 50_000): Promise<Buffer> {
  const pieces = Array.from({ length: Math.ceil(bytes.length / piece) }, (_, n) =>
    bytes.subarray(n * piece, (n + 1) * piece),
  )
  const sealed: Buffer[] = []
  for await (const one of sealAll(pieces, { mailKey, kind, salt: randomBytes(SALT_BYTES) })) sealed.push(one)
  return Buffer.concat(sealed)
}

/** Reads like the store: the head, then the frames of the span, in pieces of an odd size. */
async function open(sealed: Buffer, { span = WHOLE, kind = 'files', key = mailKey, piece = 1_777 }: Opening = {}) {
  const size = plainSize(sealed.length)
  if (size === null) throw new BrokenObject('No size of an object')
  const objectKey = keyOfHead(sealed.subarray(0, HEAD_BYTES), { mailKey: key, kind })
  const plan = planSpan(size, span)
  if (plan === null) return null
  const part = sealed.subarray(plan.sealedFrom, plan.sealedFrom + plan.sealedLength)
  const pieces = Array.from({ length: Math.ceil(part.length / piece) }, (_, n) =>
    part.subarray(n * piece, (n + 1) * piece),
  )
  const opened: Buffer[] = []
  for await (const one of openAll(pieces, plan, objectKey)) opened.push(one)
  return Buffer.concat(opened)
}

/** The stream ends in the error that the object is not the written one, and returns no data. */
async function isSeen(t: Test, opened: Promise<unknown>, what: string): Promise<void> {
  const end = await opened.then(
    () => null,
    (error: unknown) => error,
  )
  t.ok(end instanceof BrokenObject, what)
}

interface Opening {
  readonly span?: Span
  readonly kind?: ObjectKind
  readonly key?: Buffer
  readonly piece?: number
}

t.test('frame: a sealed object is read back, and its size follows from that of the object', async (t) => {
  for (const size of SIZES) {
    const bytes = randomBytes(size)
    for (const piece of [999, FRAME_BYTES, 10_000_000]) {
      const sealed = await seal(bytes, 'files', piece)
      t.equal(sealed.length, sealedSize(size), `${size} in pieces of ${piece}`)
      t.equal(plainSize(sealed.length), size)
      t.ok((await open(sealed))?.equals(bytes))
    }
  }
  t.equal(plainSize(HEAD_BYTES), null, 'a head alone is no object')
  t.equal(plainSize(sealedSize(FRAME_BYTES) + 1), null, 'nor is what ends within a tag')
})

t.test('frame: any existing range is read, and no other', async (t) => {
  const bytes = randomBytes(3 * FRAME_BYTES + 7)
  const sealed = await seal(bytes)
  const ends = [0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 2 * FRAME_BYTES, 3 * FRAME_BYTES, bytes.length]
  for (const from of ends) {
    for (const to of ends.filter((end) => end >= from)) {
      const found = await open(sealed, { span: { from, length: to - from } })
      t.ok(found?.equals(bytes.subarray(from, to)), `${from} to ${to}`)
    }
    t.ok((await open(sealed, { span: { from, length: null } }))?.equals(bytes.subarray(from)))
  }
  t.equal(await open(sealed, { span: { from: 0, length: bytes.length + 1 } }), null)
  t.equal(await open(sealed, { span: { from: bytes.length + 1, length: null } }), null)
  t.equal(await open(sealed, { span: { from: -1, length: 2 } }), null)
})

t.test('frame: a bit changed in any region is seen', async (t) => {
  const bytes = randomBytes(2 * FRAME_BYTES + 100)
  const sealed = await seal(bytes)
  const regions: [string, number][] = [
    ['magic', 0],
    ['salt', 5],
    ['first frame', HEAD_BYTES],
    ['tag of the first frame', HEAD_BYTES + FRAME_BYTES + 3],
    ['second frame', HEAD_BYTES + SEALED_FRAME_BYTES + 77],
    ['last frame', sealed.length - 50],
    ['last tag', sealed.length - 1],
  ]
  for (const [region, at] of regions) {
    for (const bit of [1, 128]) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ bit
      await isSeen(t, open(changed), region)
    }
  }
})

t.test('frame: cut, lengthened, swapped or doubled frames are seen', async (t) => {
  const bytes = randomBytes(3 * FRAME_BYTES)
  const sealed = await seal(bytes)
  const frame = (n: number): Buffer =>
    sealed.subarray(HEAD_BYTES + n * SEALED_FRAME_BYTES, HEAD_BYTES + (n + 1) * SEALED_FRAME_BYTES)
  const head = sealed.subarray(0, HEAD_BYTES)
  const other = await seal(randomBytes(3 * FRAME_BYTES))
  const otherFrame = other.subarray(HEAD_BYTES + SEALED_FRAME_BYTES, HEAD_BYTES + 2 * SEALED_FRAME_BYTES)
  const cases: [string, Buffer[]][] = [
    ['cut at a frame', [head, frame(0), frame(1)]],
    ['cut within a frame', [head, frame(0), frame(1), frame(2).subarray(0, 500)]],
    ['cut to its head', [head]],
    ['cut to nothing', []],
    ['a frame more', [head, frame(0), frame(1), frame(2), frame(2)]],
    ['swapped', [head, frame(1), frame(0), frame(2)]],
    ['the last one twice', [head, frame(0), frame(2), frame(2)]],
    ['a frame of another object of the same mail', [head, frame(0), otherFrame, frame(2)]],
    ['the head of another object', [other.subarray(0, HEAD_BYTES), frame(0), frame(1), frame(2)]],
  ]
  for (const [what, parts] of cases) await isSeen(t, open(Buffer.concat(parts)), what)
  const [first] = [await open(sealed, { span: { from: 0, length: FRAME_BYTES } })]
  t.ok(first?.equals(bytes.subarray(0, FRAME_BYTES)))
})

t.test('frame: another mail, and another kind of object of the same mail, do not open it', async (t) => {
  const sealed = await seal(Buffer.from('text'), 'body')
  await isSeen(t, open(sealed, { kind: 'files' }), 'broken')
  await isSeen(t, open(sealed, { kind: 'body', key: randomBytes(32) }), 'broken')
  t.equal(String(await open(sealed, { kind: 'body' })), 'text')
})

t.test('frame: an object shorter than planned is detected', async (t) => {
  const sealed = await seal(randomBytes(3 * FRAME_BYTES))
  const plan = planSpan(3 * FRAME_BYTES, WHOLE)
  if (plan === null) return t.fail('no plan')
  const key = keyOfHead(sealed.subarray(0, HEAD_BYTES), { mailKey, kind: 'files' })
  const all = async (bytes: Buffer) => {
    for await (const _ of openAll([bytes], plan, key));
  }
  await isSeen(t, all(sealed.subarray(HEAD_BYTES, HEAD_BYTES + 2 * SEALED_FRAME_BYTES)), 'broken')
  await isSeen(t, all(Buffer.alloc(0)), 'broken')
})

t.test('mail-key: sealed with the secret, and opened with no other; a changed one does not open', async (t) => {
  const ring = ringOf('secret')
  const { key, sealed } = makeMailKey(ring)
  t.match(sealed, /^[\w-]{54}$/)
  t.ok(openMailKey(ring, sealed)?.equals(key))
  t.notOk(makeMailKey(ring).key.equals(key), 'each mail has its own')
  t.equal(openMailKey(ringOf('other'), sealed), null)
  t.equal(openMailKey(ring, `${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`), null)
  for (const text of ['', 'x', sealed.slice(0, 20)]) t.equal(openMailKey(ring, text), null)
})
