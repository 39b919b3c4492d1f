/** data - lines that are checked however they are cut, and bytes that are held, released once, or refused. */

import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import type { SMTPServerDataStream } from 'smtp-server'
import t from 'tap'
import { HeldBytes } from '../../../src/process/held-bytes.ts'
import { gatherMessage, LineCheck } from '../../../src/reception/submission/data.ts'

/** Whether lines may be so, by a definition that is not the code's. RFC 5321 2.3.8 */
const areGood = (text: string) => !/\0|\r(?!\n)|(?<!\r)\n/.test(text)

function check(text: string, cuts: readonly number[]): boolean {
  const lines = new LineCheck()
  let at = 0
  for (const cut of [...cuts, text.length]) {
    const end = Math.max(at, Math.min(cut, text.length))
    if (!lines.push(Buffer.from(text.slice(at, end), 'latin1'))) return false
    at = end
  }
  return lines.isWhole
}

t.test('data: lines are judged alike wherever they are cut [submission.lines]', async (t) => {
  const text = fc
    .array(fc.constantFrom('\r\n', '\r', '\n', '\0', 'a', '.', '\r\n.\r\n', 'line', '\xe9'), { maxLength: 12 })
    .map((pieces) => pieces.join(''))
  const cuts = fc.array(fc.nat(40), { maxLength: 4 }).map((all) => all.sort((a, b) => a - b))
  const property = fc.property(text, cuts, (text, cuts) => check(text, cuts) === areGood(text))
  t.doesNotThrow(() => fc.assert(property, { numRuns: 5000 }))
  for (const good of ['', 'a\r\n', 'a', '\r\n\r\n', '\xe9\r\n']) t.ok(check(good, []), JSON.stringify(good))
  for (const bad of ['\r', 'a\r', 'a\n', '\n', '\r\r\n', '\n\r', 'a\rb\r\n', '\0', '\r\n.\n'])
    t.notOk(check(bad, []), JSON.stringify(bad))
})

function makeStream(sizeMax = Number.POSITIVE_INFINITY): SMTPServerDataStream {
  const stream = new PassThrough() as unknown as SMTPServerDataStream
  let bytes = 0
  const write = stream.write.bind(stream) as (chunk: Buffer) => boolean
  stream.sizeExceeded = false
  stream.write = ((chunk: Buffer) => {
    bytes += chunk.length
    stream.sizeExceeded = bytes > sizeMax
    return write(chunk)
  }) as typeof stream.write
  return stream
}

t.test('data: a message is held while it is processed, and released once [submission.held]', async (t) => {
  const held = new HeldBytes(10)
  const stream = makeStream()
  const gathering = gatherMessage(stream, held)
  stream.write(Buffer.from('a\r\n'))
  stream.end(Buffer.from('b\r\n'))
  const gathered = await gathering
  if (gathered.kind !== 'whole') throw new Error(gathered.kind)
  t.equal(gathered.bytes.toString(), 'a\r\nb\r\n')
  t.equal(held.take(5), false)
  gathered.release()
  gathered.release()
  t.equal(held.take(10), true)
  t.equal(held.take(1), false, 'and no more than once')
})

t.test('data: a refused message is read to its end, and none of it stays held', async (t) => {
  const cases: [kind: string, chunks: string[], heldMax: number, sizeMax?: number][] = [
    ['crowded', ['aaaa\r\n', 'bbbb\r\n', 'c\r\n'], 10],
    ['bad_lines', ['a\r\n', 'b\n', 'c\r\n'], 100],
    ['bad_lines', ['a\r\n', 'b\r'], 100],
    ['too_large', ['aaaa\r\n', 'bbbb\r\n'], 100, 8],
  ]
  for (const [kind, chunks, heldMax, sizeMax] of cases) {
    const held = new HeldBytes(heldMax)
    const stream = makeStream(sizeMax)
    const gathering = gatherMessage(stream, held)
    for (const chunk of chunks) stream.write(Buffer.from(chunk))
    stream.end()
    t.match(await gathering, { kind })
    t.equal(held.take(heldMax), true, `${kind}: all is given back`)
  }
})

t.test('data: a client that goes away leaves nothing', async (t) => {
  const held = new HeldBytes(10)
  for (const error of [undefined, new Error('Connection closed before the message was received in full')]) {
    const stream = makeStream()
    const gathering = gatherMessage(stream, held)
    stream.write(Buffer.from('a\r\n'))
    stream.destroy(error)
    t.match(await gathering, { kind: 'gone' })
    t.equal(held.take(10), true)
    held.give(10)
  }
})
