/**
 * template - which texts are placeholders, which are refused, and that nothing is expanded twice or escapes from HTML.
 */
import t from 'tap'
import { withHtmlFooter, withTextFooter } from '../../../src/mail/compose/footer.ts'
import { fillHtml, fillText, parseTemplate, type Template } from '../../../src/mail/compose/template.ts'

const parsed = (text: string): Template => {
  const template = parseTemplate(text)
  if (template === null) throw new Error(`Not a template: ${text}`)
  return template
}

for (const [text, values, filled] of [
  ['Hello', {}, 'Hello'],
  ['', {}, ''],
  ['{{a}}', { a: '1' }, '1'],
  ['{{a}}{{a}}{{b}}', { a: '1', b: '2' }, '112'],
  ['Hi {{ first_name }}, {{\tb\t}}!', { first_name: 'Ada', b: 'x' }, 'Hi Ada, x!'],
  ['{ {a}} } }} {', {}, '{ {a}} } }} {'],
  ['{{a}}}', { a: '1' }, '1}'],
  ['{{a}}', { a: '{{b}}$&$1' }, '{{b}}$&$1'],
  ['{{a}}', { a: '' }, ''],
  [`{{${'x'.repeat(40)}}}`, { ['x'.repeat(40)]: 'y' }, 'y'],
] as const)
  t.test(`template: ${text.slice(0, 30)} [broadcast.placeholders]`, async (t) => {
    t.equal(fillText(parsed(text), values), filled)
  })

for (const text of [
  '{{',
  '{{}}',
  '{{ }}',
  '{{a',
  '{{a}',
  '{{a b}}',
  '{{#if a}}',
  '{{user.name}}',
  '{{{a}}}',
  '{{ä}}',
  '{{a}} {{/a}}',
  '{{\na}}',
  `{{${'x'.repeat(41)}}}`,
  '{{{{a}}}}',
  '{{a|upper}}',
])
  t.test(`template: ${JSON.stringify(text).slice(0, 30)} is refused [broadcast.placeholders]`, async (t) => {
    t.equal(parseTemplate(text), null)
  })

t.test('template: in HTML a value is text [broadcast.placeholders]', async (t) => {
  const nasty = `<script>"'&</script>`
  t.equal(
    fillHtml(parsed('<a href="{{a}}">{{a}}</a>'), { a: nasty }),
    '<a href="&lt;script&gt;&quot;&#39;&amp;&lt;/script&gt;">&lt;script&gt;&quot;&#39;&amp;&lt;/script&gt;</a>',
  )
  t.equal(fillText(parsed('{{a}}'), { a: nasty }), nasty)
})

t.test('template: a million placeholders, and braces without end, take no time', async (t) => {
  t.equal(parsed('{{a}}'.repeat(200_000)).names.length, 200_000)
  t.equal(parseTemplate('{'.repeat(1_000_000)), null)
  t.equal(parseTemplate(`{{${' '.repeat(1_000_000)}`), null)
})

for (const [html, filled] of [
  ['<p>Hi</p>', '<p>Hi</p><p><a href="U">Unsubscribe</a></p>'],
  ['<body>Hi {{a}}</body></html>', '<body>Hi 1<p><a href="U">Unsubscribe</a></p></body></html>'],
  ['</body>{{a}}</BODY ><b>', '</body>1<p><a href="U">Unsubscribe</a></p></BODY ><b>'],
  ['<a href="{{unsubscribeUrl}}">out</a></body>', '<a href="U">out</a></body>'],
] as const)
  t.test(`footer: of ${html} [broadcast.footer]`, async (t) => {
    t.equal(fillHtml(withHtmlFooter(parsed(html)), { a: '1', unsubscribeUrl: 'U' }), filled)
  })

t.test('footer: of text [broadcast.footer]', async (t) => {
  t.equal(fillText(withTextFooter(parsed('Hi {{a}}')), { a: '1', unsubscribeUrl: 'U' }), 'Hi 1\n\nUnsubscribe: U\n')
  t.equal(fillText(withTextFooter(parsed('{{unsubscribeUrl}} bye')), { unsubscribeUrl: 'U' }), 'U bye')
})
