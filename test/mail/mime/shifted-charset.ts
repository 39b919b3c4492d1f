/** shifted-charset - every character of johab, as Python's codec decodes it, and bytes that are no text. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { SHIFTED } from '../../../src/mail/mime/shifted-charset.ts'

/** SHA-256 of lines `<hex of the pair> <character>` of CPython, without the additions of 1998 (euro, registered). */
const JOHAB = '7fcbced746d24c872b511295f90ace74c5d1c935f81a5629f3532d00c4a9dc09'
const JOHAB_PAIRS = 17063

const decode = (label: string, bytes: Uint8Array) => SHIFTED.get(label)?.(bytes) ?? ''

t.test('shifted-charset: all pairs of johab are the characters of another decoder', async (t) => {
  const lines: string[] = []
  for (let lead = 0x80; lead < 0x100; lead += 1)
    for (let trail = 0x20; trail < 0x100; trail += 1) {
      const bytes = Buffer.of(lead, trail)
      const text = decode('johab', bytes)
      // Letters of KS X 1001 that johab already encodes by their bits. The other decoder refuses them.
      const isTwice = lead === 0xda && trail >= 0xa1 && trail <= 0xd3
      if (text.length === 1 && text !== '\ufffd' && !isTwice) lines.push(`${bytes.toString('hex')} ${text}`)
    }
  t.equal(lines.length, JOHAB_PAIRS)
  t.equal(createHash('sha256').update(lines.join('\n')).digest('hex'), JOHAB)
})

t.test('shifted-charset: bytes that are no text come out well-formed, in linear time', async (t) => {
  for (const label of SHIFTED.keys())
    for (const piece of ['\x0e', '\x1b$)', '~{', '~', '\x0e\xff', '\xd0']) {
      const text = decode(label, Buffer.from(piece.repeat(100_000), 'latin1'))
      t.notMatch(text, /\p{Surrogate}/u, `${label} ${JSON.stringify(piece)}`)
    }
})
