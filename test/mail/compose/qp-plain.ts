/** qp-plain - the same bytes as nodemailer's encoder, for every plain text that is longer than a line. */

import fc from 'fast-check'
import { encode, wrap } from 'nodemailer/lib/qp'
import t from 'tap'
import { encodePlain } from '../../../src/mail/compose/qp-plain.ts'

const LINE_OCTETS_MAX = 76

/** Contents that decide where lines break: full stops, blanks, escapes, and words of every length. */
const PIECES = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(' ', '  ', '\t', '.', ',', '!', '?', '=', '==', '=3D', '-', '\r\n', ' \r\n'),
  },
  { weight: 3, arbitrary: fc.string({ unit: fc.constantFrom('a', 'F', '0', '>', '"'), minLength: 1, maxLength: 80 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('a', 'word', 'x'.repeat(24), 'y'.repeat(25), 'z'.repeat(26), 'q'.repeat(51)),
  },
)
const TEXTS = fc.array(PIECES, { minLength: 2, maxLength: 40 }).map((pieces) => pieces.join(''))
/** Lines whose length and last full stop are at the decision of the cut. */
const EDGES = fc
  .tuple(fc.integer({ min: 45, max: 80 }), fc.constantFrom(' ', '.', '=', 'x'), fc.integer({ min: 0, max: 34 }), TEXTS)
  .map(([before, stop, after, end]) => `${'w'.repeat(before)}${stop}${'v'.repeat(after)}${end}`)

t.test('qp-plain: random texts, as nodemailer encodes and wraps them', async () => {
  fc.assert(
    fc.property(fc.oneof(TEXTS, EDGES), (text) => {
      const expected = encode(text)
      return expected.length <= LINE_OCTETS_MAX || encodePlain(text) === wrap(expected, LINE_OCTETS_MAX)
    }),
    { numRuns: 30_000, seed: 20_261_121 },
  )
})

t.test('qp-plain: an ended and an unended line of every length', async (t) => {
  for (let octets = 70; octets <= 160; octets += 1)
    for (const last of ['x', ' ', '\t', '.', '='])
      for (const end of ['', '\r\n', '\r\n\r\n', '\r\nend'])
        for (const filler of ['y', 'word ', '=', 'y'.repeat(30).concat('.')]) {
          const text = filler.repeat(octets).slice(0, octets - 1) + last + end
          const expected = encode(text)
          if (expected.length > LINE_OCTETS_MAX && encodePlain(text) !== wrap(expected, LINE_OCTETS_MAX))
            t.fail(JSON.stringify(text))
        }
})
