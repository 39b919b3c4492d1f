/**
 * codec - blocks, postings, filter and tail of sealed segments: decoding returns the input, and hostile bytes are
 * refused.
 */
import { randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { withoutSum } from '../../../cluster/sum.ts'
import { BrokenObject } from '../../../src/content/framing.ts'
import {
  BLOCK_ROWS,
  inflate,
  openBlock,
  packBlock,
  type SealedMessage,
  textOfBlock,
} from '../../../src/content/sealed/block.ts'
import { findPostingPage, Postings, placesIn } from '../../../src/content/sealed/postings.ts'
import { END_BYTES, indexFrom, openTail, packTail, type Tail, tailBytes } from '../../../src/content/sealed/tail.ts'
import {
  FILTER_BLOCK_CHARS,
  makeFilter,
  mayBeOf,
  mayHold,
  placeInFilter,
} from '../../../src/state/message/person-filter.ts'
import { makeRandom } from '../../support/store/random-ops.ts'

const ROUNDS = 200

t.test('a block holds the texts that went in', async (t) => {
  const random = makeRandom(1)
  for (let round = 0; round < ROUNDS; round += 1) {
    const rows = Array.from({ length: Math.floor(random() * (BLOCK_ROWS + 1)) }, (_, n) => row(random, n))
    t.same(await openBlock(await packBlock(textOfBlock(rows))), rows, { diagnostic: false })
  }
  t.throws(() => textOfBlock([{ ...row(random, 0), head: 'a\nb' }]), /line break/)
})

t.test('bytes that are no block are refused, whatever they are', async (t) => {
  const random = makeRandom(2)
  const good = await packBlock(textOfBlock([row(random, 0), row(random, 1)]))
  for (let round = 0; round < ROUNDS; round += 1) {
    const bytes = Buffer.from(good)
    for (let flips = 0; flips < 3; flips += 1) bytes[Math.floor(random() * bytes.length)]! ^= 1 << (round % 8)
    await orBroken(t, () => openBlock(bytes))
    await orBroken(t, () => openBlock(good.subarray(0, Math.floor(random() * good.length))))
    await orBroken(t, () => openBlock(randomBytes(1 + Math.floor(random() * 200))))
  }
  for (const text of ['', '1-1', '1-1\n1', '1-1\n9999999999999\nlog\nhead', '1-1\nx\nlog\nhead\nstatus'])
    await refused(t, () => openBlock(deflateRawSync(text)), JSON.stringify(text))
  await refused(t, () => inflate(deflateRawSync(Buffer.alloc(2_000_000)), 1_000_000), 'a bomb')
})

t.test('postings name each number once, at its places', async (t) => {
  const random = makeRandom(3)
  for (let round = 0; round < 20; round += 1) {
    const wanted = new Map<number, number[]>()
    const postings = new Postings()
    for (let place = 0; place < 3_000; place += 1) {
      const number = random() < 0.3 ? 7 : Math.floor(random() ** 8 * 2 ** 53)
      wanted.set(number, [...(wanted.get(number) ?? []), place])
      postings.add(number, place)
      postings.add(number, place)
    }
    const { pages, bytes } = postings.pack()
    t.ok(pages.length > 1, 'there are several pages')
    const seen = [...wanted.keys()].map((number) => find(pages, bytes, number))
    t.same(seen, [...wanted.values()], { diagnostic: false })
    for (const number of [0, 1, 8, 2 ** 53 - 1]) if (!wanted.has(number)) t.same(find(pages, bytes, number), [])
  }
})

t.test('a truncated or changed page ends', async (t) => {
  const random = makeRandom(4)
  const postings = new Postings()
  for (let place = 0; place < 500; place += 1) postings.add(Math.floor(random() * 90), place)
  const { pages, bytes } = postings.pack()
  const first = pages[0]?.[0] ?? 0
  for (let round = 0; round < ROUNDS; round += 1) {
    const changed = Buffer.from(bytes.subarray(0, Math.floor(random() * bytes.length)))
    if (changed.length > 0) changed[Math.floor(random() * changed.length)]! ^= 0xff
    await orBroken(t, () => placesIn(changed, { first, number: 89 }))
  }
  t.throws(() => placesIn(Buffer.alloc(9, 0xff), { first: 0, number: 1 }), /no end/)
  t.throws(() => placesIn(Buffer.from([0, 0x7f, 1]), { first: 0, number: 0 }), /more messages/)
})

t.test('a filter has no false no, and one false yes in a hundred', async (t) => {
  const numbers = Array.from({ length: 40_000 }, (_, n) => n * 257 + 5)
  const { text, blocks } = makeFilter(numbers)
  t.equal(withoutSum(text, 'filter').length, blocks * FILTER_BLOCK_CHARS)
  const holds = (number: number): boolean => {
    const start = placeInFilter(number, blocks).block * FILTER_BLOCK_CHARS
    return mayHold(text.slice(start, start + FILTER_BLOCK_CHARS), number, blocks)
  }
  t.ok(numbers.every(holds))
  const others = Array.from({ length: 20_000 }, (_, n) => n * 257 + 6)
  const wrong = others.filter(holds).length / others.length
  t.ok(wrong < 0.02, `${(wrong * 100).toFixed(2)} % of others`)
  t.ok(mayHold('', 1, blocks), 'a filter that is lost holds everything')
  const absent = others.filter((number) => !holds(number)).slice(0, 100)
  t.ok(numbers.slice(0, 500).every((number) => mayBeOf(text, number, blocks)))
  t.notOk(absent.some((number) => mayBeOf(text, number, blocks)))
  const damaged = `${text.slice(0, 9)}${text[9] === 'A' ? 'B' : 'A'}${text.slice(10)}`
  for (const one of [null, damaged, withoutSum(text, 'filter'), text.slice(0, 30)])
    t.ok(
      absent.every((number) => mayBeOf(one, number, blocks)),
      'a whole filter alone says no',
    )
})

t.test('a tail names the places of its parts, and nothing else is accepted as one', async (t) => {
  const tail: Tail = {
    blocks: [
      ['5-9', 128, 700],
      ['9-18446744073709551615', 3, 40],
    ],
    indexes: {
      recipient: [
        [1, 30],
        [77, 12],
      ],
      sender: [[4, 8]],
      tag: [],
    },
  }
  const packed = packTail(tail)
  const size = 700 + 40 + 30 + 12 + 8 + packed.length
  t.equal(tailBytes(packed), packed.length)
  t.same(openTail(packed, size), tail)
  t.same(
    (['recipient', 'sender', 'tag'] as const).map((name) => indexFrom(tail, name)),
    [740, 782, 790],
  )
  await refused(t, () => openTail(packed, size + 1))
  await refused(t, () => tailBytes(Buffer.alloc(3)))
  await refused(t, () => tailBytes(Buffer.alloc(20)))
  const end = packed.subarray(-END_BYTES)
  for (const text of ['', '[]', '[2,[],[]]', '[1,[["x",1,1]],[]]', '[1,[["1-1",-1,1]],[]]', '[1,[],[[[1.5,2]]]]'])
    await refused(t, () => openTail(Buffer.concat([deflateRawSync(text), end]), size), text)
})

function row(random: () => number, n: number): SealedMessage {
  const text = (): string =>
    JSON.stringify([n, Math.floor(random() * 1e9), 'Grüße 🎉\n'.repeat(Math.floor(random() * 4))])
  const statuses = Array.from({ length: 1 + Math.floor(random() * 3) }, text)
  return { entryId: `${1_700_000_000_000 + n}-${Math.floor(random() * 1e15)}`, log: text(), head: text(), statuses }
}

function find(pages: ReturnType<Postings['pack']>['pages'], bytes: Buffer, number: number): number[] {
  const page = findPostingPage(pages, 0, number)
  if (page === null) return []
  return placesIn(bytes.subarray(page.from, page.from + page.length), { first: page.first, number })
}

/** Whatever the result, it ends, and its error is that the object is broken. */
async function orBroken(t: Test, act: () => unknown): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (!(error instanceof BrokenObject)) t.fail(`Threw ${String(error)}`)
  }
}

/** It is refused as a broken object. */
async function refused(t: Test, act: () => unknown, name = String(act)): Promise<void> {
  try {
    await act()
    t.fail(`${name} was taken`)
  } catch (error) {
    t.ok(error instanceof BrokenObject, name)
  }
}
