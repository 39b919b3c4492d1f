/** form - a form in a URL's encoding is read as URLSearchParams reads it */

import t from 'tap'
import { parsePairs, readForm } from '../../src/doors/mailgun/form.ts'
import type { EdgeRequest } from '../../src/http/request.ts'

const CASES = [
  '',
  '&',
  '=',
  '&&a=1&&',
  'a',
  'a=',
  '=a',
  'a=b=c',
  'a=1&a=2',
  'a+b=c+d',
  'a=%2B%26%3D%25',
  'a=%',
  'a=%4',
  'a=%4&b=%zz&c=%4z',
  'a=%C3%BC&%C3%BC=a',
  'a=ü&b=日本',
  'a=%FF%FE',
  'a=%EF%BB%BFb',
  'a=%00',
  'a=\0',
  '%00=a',
  '\0&a=%0',
  'a=%0D%0Ab',
  '%61=%62',
]
/** Of raw letters beside broken escapes, URLSearchParams of Node makes something else than its standard. */
const PIECES = ['a', '=', '&', '+', '%', '%4', '%41', '%c3%bc', '%ff', 'zz', '\n']

t.test('form: pairs', async (t) => {
  for (const text of CASES) {
    const form = parsePairs(Buffer.from(text))
    t.same(form?.fields, [...new URLSearchParams(text)], JSON.stringify(text))
    t.equal(form?.mayHoldNul, /\0|%00/.test(text), JSON.stringify(text))
  }
})

t.test('form: pairs of any text', async (t) => {
  let seed = 7
  const next = (below: number) => {
    seed = (seed * 48_271) % 0x7fffffff
    return seed % below
  }
  for (let n = 0; n < 5_000; n += 1) {
    const text = Array.from({ length: next(20) }, () => PIECES[next(PIECES.length)]).join('')
    const found = parsePairs(Buffer.from(text))?.fields
    const expected = [...new URLSearchParams(text)]
    if (JSON.stringify(found) !== JSON.stringify(expected)) t.same(found, expected, JSON.stringify(text))
  }
})

t.test('form: too many fields', async (t) => {
  t.equal(parsePairs(Buffer.from('a=b&'.repeat(2_000)))?.fields.length, 2_000)
  t.equal(parsePairs(Buffer.from('a=b&'.repeat(2_001))), null)
  t.same(parsePairs(Buffer.from('&'.repeat(2_000_000)))?.fields, [], 'empty ones do not count')
})

t.test('form: a part in base64 may hold U+0000 that no byte shows', async (t) => {
  const head = 'Content-Disposition: form-data; name="text"\r\nContent-Transfer-Encoding: base64'
  const body = Buffer.from(`--x\r\n${head}\r\n\r\nYQBi\r\n--x--\r\n`)
  const named = { 'content-type': 'multipart/form-data; boundary=x' }
  const form = await readForm({ body, named } as unknown as EdgeRequest)
  t.same([...(form?.fields ?? [])], [['text', 'a\0b']])
  t.equal(form?.mayHoldNul, true)
})
