/** form - a form in a URL's encoding is read as URLSearchParams reads it */

import t from 'tap'
import { parsePairs } from '../../src/doors/mailgun/form.ts'

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
  'a=%0D%0Ab',
  '%61=%62',
]
/** Of raw letters beside broken escapes, URLSearchParams of Node makes something else than its standard. */
const PIECES = ['a', '=', '&', '+', '%', '%4', '%41', '%c3%bc', '%ff', 'zz', '\n']

t.test('form: pairs', async (t) => {
  for (const text of CASES) t.same(parsePairs(Buffer.from(text)), [...new URLSearchParams(text)], JSON.stringify(text))
})

t.test('form: pairs of any text', async (t) => {
  let seed = 7
  const next = (below: number) => {
    seed = (seed * 48_271) % 0x7fffffff
    return seed % below
  }
  for (let n = 0; n < 5_000; n += 1) {
    const text = Array.from({ length: next(20) }, () => PIECES[next(PIECES.length)]).join('')
    const found = parsePairs(Buffer.from(text))
    const expected = [...new URLSearchParams(text)]
    if (JSON.stringify(found) !== JSON.stringify(expected)) t.same(found, expected, JSON.stringify(text))
  }
})

t.test('form: too many fields', async (t) => {
  t.equal(parsePairs(Buffer.from('a=b&'.repeat(2_000)))?.length, 2_000)
  t.equal(parsePairs(Buffer.from('a=b&'.repeat(2_001))), null)
  t.same(parsePairs(Buffer.from('&'.repeat(2_000_000))), [], 'empty ones do not count')
})
