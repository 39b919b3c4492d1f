/** part-header - a changed bit anywhere in a part of content is an error; parts of an earlier release have no sum. */
import t from 'tap'
import {
  checkPart,
  chunkCountOf,
  headerBytesOf,
  PART_HEADER_BYTES,
  partEncoding,
  writePartHeader,
} from '../../../src/state/message/part-header.ts'

t.test('part header: every changed bit of a part is found, in each of its chunks', async (t) => {
  const first = Buffer.alloc(PART_HEADER_BYTES + 20, 'text')
  const whole = Buffer.concat([first, Buffer.alloc(30, 'more')])
  writePartHeader(whole, 2, 2)
  const chunks = (bytes: Buffer) => [bytes.subarray(0, first.length), bytes.subarray(first.length)]
  checkPart(chunks(whole))
  t.match([partEncoding(whole), chunkCountOf(whole), headerBytesOf(whole)], [2, 2, PART_HEADER_BYTES])
  for (let bit = 0; bit < whole.length * 8; bit += 1) {
    const changed = Buffer.from(whole)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    try {
      checkPart(chunks(changed))
      t.fail(`bit ${bit} was not found`)
    } catch {}
  }
  t.throws(() => checkPart(chunks(whole).slice(0, 1)), 'a chunk is missing')
  t.throws(() => checkPart([]))
  t.throws(() => checkPart([Buffer.from('0')]))
})

t.test('part header: a part of an earlier release has three bytes and no sum', async (t) => {
  const former = Buffer.from([2, 0, 1, 1, 0, 2, 0x68, 0x69])
  checkPart([former])
  t.match([partEncoding(former), chunkCountOf(former), headerBytesOf(former)], [2, 1, 3])
})
