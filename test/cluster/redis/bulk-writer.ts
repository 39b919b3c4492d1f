/** Tests of cluster/bulk-writer.ts: arguments as the store reads them. */
import { test } from 'tap'
import { BulkWriter } from '../../../cluster/redis/bulk-writer.ts'

const TEXTS = [
  '',
  'a',
  'nine char',
  '0123456789',
  'ü',
  'a€b',
  '😀',
  'x'.repeat(256),
  'x'.repeat(257),
  'ü'.repeat(20_000),
]

test('bulk-writer: every text with the number of its bytes before it', async (t) => {
  const writer = new BulkWriter()
  for (let round = 0; round < 2; round += 1) {
    writer.reset()
    writer.command(TEXTS.length)
    for (const text of TEXTS) writer.text(text)
    const expected = TEXTS.map((text) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`).join('')
    t.equal(writer.written().toString(), `*${TEXTS.length}\r\n${expected}`)
    t.equal(writer.length, writer.written().length)
  }
})

test('bulk-writer: bytes of another place between', async (t) => {
  const writer = new BulkWriter()
  writer.begin(1_000_000)
  const at = writer.length
  writer.end()
  writer.text('after')
  writer.bytes(Buffer.from('ü\r\n'))
  t.equal(writer.written().toString('latin1', 0, at), '$1000000\r\n')
  t.equal(writer.written().toString('latin1', at), '\r\n$5\r\nafter\r\n$4\r\n\xc3\xbc\r\n\r\n')
})
