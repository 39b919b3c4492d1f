/** compose-plain - the same bytes as the composer of every message, for all that it takes and near its edges. */

import t from 'tap'
import { type ComposeInput, composeMessage } from '../../../src/mail/compose/compose.ts'
import { composePlain } from '../../../src/mail/compose/compose-plain.ts'
import { type Chance, makeChance } from '../../simulation/prng.ts'

const BASE: ComposeInput = {
  messageId: '018f0000-0000-7000-8000-000000000001',
  acceptedAtMs: Date.UTC(2026, 0, 31, 12, 0, 0),
  from: { address: 'shop@acme.test', name: 'Acme Shop' },
  to: [{ address: 'ann@example.com', name: null }],
  cc: [],
  subject: 'Your receipt',
  text: 'Hello\nand thanks.\n.\nA dot line above.',
  html: '<p>Hello</p>',
  headers: {},
  attachments: [],
  boundarySeed: '0abc123def456ghi78-0',
}

const PLAIN: Record<string, Partial<ComposeInput>> = {
  'feedback id': { feedbackId: 'aGVsbG8_:0e7faee5:faee555a:sw0123456789' },
  'text and html': {},
  'text only': { html: null },
  'text only, empty html': { html: '' },
  'html only': { text: null },
  'text that ends in a line break': { text: 'Hello\n', html: null },
  'line ends of every kind': { text: 'a\rb\nc\r\nd\n\r\n.\r\n..x\n', html: '\n' },
  'lines of 76, 77 and many': { text: 'x'.repeat(76), html: `${'y'.repeat(77)}\n<p>${'word = '.repeat(900)}</p> \t\n` },
  names: {
    from: { address: 'a.b+c@b.test', name: 'Doe, "John" \\ (c)' },
    to: [
      { address: 'ann_1@mail-2.example.com', name: 'A. Customer' },
      { address: 'bob@example.com', name: '' },
      { address: 'bob@example.com', name: 'Bare Name_1' },
    ],
    cc: [{ address: 'carl@example.com', name: null }],
  },
  'fifty recipients': { to: Array.from({ length: 50 }, (_, n) => ({ address: `r${n}@example.com`, name: `R. ${n}` })) },
  'nobody shown': { to: [] },
  'subjects around the fold': { subject: 's'.repeat(67) },
  'subject with words': { subject: `${'word '.repeat(30)}end` },
}

const BEYOND: Record<string, Partial<ComposeInput>> = {
  'feedback id that needs folding': { feedbackId: 'a:'.repeat(40) },
  'a custom field': { headers: { 'X-Id': '1' } },
  'an attachment': { attachments: [{ name: 'a', contentType: null, contentId: null, content: Buffer.alloc(1) }] },
  'other characters in the text': { text: 'naïve' },
  'a control in the html': { html: 'a\u0001b' },
  NUL: { text: 'a\0b' },
  'other characters in a name': { from: { address: 'a@b.test', name: 'Ännchen' } },
  'a padded name': { from: { address: 'a@b.test', name: ' x ' } },
  'an international domain': { to: [{ address: 'a@xn--jgeva-dua.ee', name: null }] },
  'a quoted local part': { to: [{ address: '"a b"@b.test', name: null }] },
  'a quote in the subject': { subject: 'say "hi"' },
  'what looks like an encoded word': { subject: '=?utf-8?Q?x?=' },
  'an empty subject': { subject: '' },
  'no content': { text: '', html: null },
  'a long line without a letter': { text: '1'.repeat(100) },
  'a large body': { text: 'x\n'.repeat(40_000) },
  'a long seed': { boundarySeed: 's'.repeat(41) },
}

const PIECES = [
  'a',
  'Word',
  ' ',
  '  ',
  '.',
  ',',
  '=',
  '=3D',
  '"',
  '\\',
  '\t',
  '\n',
  '\r\n',
  '-',
  '_',
  '<',
  '@',
  '0',
  'é',
]
const CLEAN = PIECES.filter((piece) => /^[\w .,=<-]+$/.test(piece))

for (const [name, part] of Object.entries(PLAIN)) {
  t.test(`the same bytes: ${name}`, (t) => {
    const input = { ...BASE, ...part }
    t.equal(composePlain(input)?.toString('latin1'), composeMessage(input).toString('latin1'))
    t.end()
  })
}

t.test('what is beyond it is left to the other', (t) => {
  for (const [name, part] of Object.entries(BEYOND)) t.equal(composePlain({ ...BASE, ...part }), null, name)
  t.end()
})

t.test('subjects and names of every length fold alike', (t) => {
  for (let chars = 1; chars <= 200; chars += 1) {
    const words = 'some words, of x '.repeat(20).slice(0, chars).trim()
    const input = { ...BASE, subject: words, from: { address: 'shop@acme.test', name: words } }
    t.equal(composePlain(input)?.toString('latin1'), composeMessage(input).toString('latin1'), `${chars} characters`)
  }
  t.end()
})

t.test('two thousand messages by chance: the same bytes, or none', (t) => {
  const chance = makeChance(7)
  let built = 0
  for (let n = 0; n < 2000; n += 1) {
    const input = messageOf(chance)
    const plain = composePlain(input)
    if (plain === null) continue
    built += 1
    if (!plain.equals(composeMessage(input))) return t.fail(JSON.stringify(input))
  }
  t.ok(built > 500, `${built} built`)
  t.end()
})

function messageOf(chance: Chance): ComposeInput {
  const textOf = (max: number, pieces: readonly string[]) =>
    Array.from({ length: chance.below(max) }, () => chance.pick(pieces)).join('')
  const someOf = (max: number) => (chance.hit(0.8) ? textOf(max, CLEAN).trim() : textOf(max, PIECES))
  const bodyOf = () => (chance.hit(0.2) ? null : textOf(chance.hit(0.5) ? 20 : 400, PIECES.slice(0, -1)))
  const oneOf = () => ({
    address: chance.hit(0.1)
      ? chance.pick(["o'n@a.test", 'ann@1.2', 'ann@x--y.de'])
      : `${chance.pick(['ann', 'bob.c', 'x+y', '1'])}@${chance.pick(['a.test', 'b-c.example.com'])}`,
    name: chance.hit(0.3) ? null : someOf(chance.hit(0.2) ? 60 : 8),
  })
  return {
    ...BASE,
    from: oneOf(),
    to: Array.from({ length: chance.below(4) }, oneOf),
    cc: Array.from({ length: chance.below(2) }, oneOf),
    subject: `S${someOf(chance.hit(0.3) ? 60 : 10)}`,
    text: bodyOf(),
    html: bodyOf(),
    boundarySeed: 's'.repeat(1 + chance.below(40)),
  }
}
