/** check - what a broadcast is refused for beyond its schema, with the path of each fault. */
import t from 'tap'
import type { BroadcastBody } from '../../../schemas/broadcast.ts'
import { fillHtml, fillText } from '../../../src/mail/compose/template.ts'
import { checkBroadcast, readTemplates } from '../../../src/sending/broadcast/check.ts'

type Message = BroadcastBody['messages'][number]
const message = (
  to: string,
  substitutions: Record<string, string> = {},
  metadata: Record<string, string> = {},
): Message => ({ to, substitutions, metadata }) as Message
const body = (changes: object): BroadcastBody =>
  ({
    streamId: '01a1f8d8-8300-7000-8000-0e7faee555a7',
    from: 'news@acme.test',
    subject: 'News',
    text: 'Hello',
    headers: {},
    tag: null,
    metadata: {},
    messages: [message('ada@example.net')],
    ...changes,
  }) as BroadcastBody
const pathsOf = (changes: object) => checkBroadcast(body(changes)).map(({ path }) => path)
const entries = (count: number, prefix: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, 'x']))

const CASES: readonly (readonly [name: string, changes: object, paths: string[]])[] = [
  ['nothing is wrong', {}, []],
  [
    'each value is used and each placeholder has one',
    { text: '{{a}}', html: '{{b}} {{unsubscribeUrl}}', messages: [message('a@b.test', { a: '1', b: '' })] },
    [],
  ],
  [
    'braces that are no placeholder, in each text',
    { subject: '{{', text: '{{#if}}', html: '{{{a}}}' },
    ['subject', 'text', 'html'],
  ],
  ['the link in the subject', { subject: 'x {{unsubscribeUrl}}' }, ['subject']],
  [
    'the link as a given name',
    { messages: [message('a@b.test', { unsubscribeUrl: 'x' })] },
    ['messages.0.substitutions.unsubscribeUrl'],
  ],
  [
    'no value, and one too many',
    { text: '{{a}}', messages: [message('a@b.test', { b: '1' })] },
    ['messages.0.substitutions.b', 'messages.0.substitutions.a'],
  ],
  [
    'names of every object',
    { text: '{{constructor}} {{__proto__}} {{toString}}' },
    ['constructor', '__proto__', 'toString'].map((name) => `messages.0.substitutions.${name}`),
  ],
  [
    'an address twice, in any case',
    { messages: [message('Ada@Example.net'), message('b@b.test'), message('ada@example.NET')] },
    ['messages.2.to'],
  ],
  [
    'an empty subject',
    { subject: '{{a}}', messages: [message('a@b.test', { a: '' }), message('b@b.test', { a: 'x' })] },
    ['messages.0.substitutions'],
  ],
  [
    'a subject that grows too long',
    {
      subject: `{{a}}${'x'.repeat(900)}`,
      messages: [message('a@b.test', { a: 'y'.repeat(99) }), message('b@b.test', { a: 'y'.repeat(98) })],
    },
    ['messages.0.substitutions'],
  ],
  [
    'characters are counted, not units',
    { subject: '{{a}}{{a}}', messages: [message('a@b.test', { a: '😀'.repeat(499) })] },
    [],
  ],
  [
    'too much metadata together',
    {
      metadata: entries(15, 'a'),
      messages: [
        message('a@b.test', {}, entries(6, 'b')),
        message('b@b.test', {}, entries(5, 'b')),
        message('c@b.test', {}, entries(20, 'a')),
      ],
    },
    ['messages.0.metadata'],
  ],
]

for (const [name, changes, paths] of CASES)
  t.test(`broadcast: ${name} [broadcast.placeholders] [broadcast.messages]`, async (t) => {
    t.same(pathsOf(changes), paths)
  })

t.test('broadcast: the first hundred issues [error.issues]', async (t) => {
  const messages = Array.from({ length: 50_000 }, (_, n) => message(`p${n % 40_000}@b.test`, { b: '1' }))
  const paths = pathsOf({ text: '{{a}}', messages })
  t.equal(paths.length, 100)
  t.equal(paths[99], 'messages.49.substitutions.a')
})

t.test('broadcast: the sent content has the footer in each part without a link [broadcast.footer]', async (t) => {
  const { text, html } = readTemplates({
    subject: 'x',
    text: 'Hi {{a}}',
    html: '<a href="{{unsubscribeUrl}}">{{a}}</a>',
  })
  const values = { a: '<b>', unsubscribeUrl: 'https://x.test/u/t?a&b' }
  t.equal(fillText(text as NonNullable<typeof text>, values), 'Hi <b>\n\nUnsubscribe: https://x.test/u/t?a&b\n')
  t.equal(fillHtml(html as NonNullable<typeof html>, values), '<a href="https://x.test/u/t?a&amp;b">&lt;b&gt;</a>')
})
