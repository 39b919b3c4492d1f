/** mail-preview - what is taken out of a mail before a browser sees it, its links, its inline files. */
import t from 'tap'
import { findHrefs, mailPreview, referencedIds } from '../../src/dashboard/mail-preview.ts'

const shown = (html: string, files = new Map<string, string>()) =>
  mailPreview({ text: null, html, images: false, mode: 'live', files }).text ?? ''

t.test('mail-preview: messages before the request for a policy have no effect [member.frame]', async (t) => {
  for (const name of ['iframe', 'IFRAME', 'frame', 'object', 'embed', 'portal', 'fencedframe', 'link', 'meta', 'base'])
    for (const text of [`<${name} src=x>`, `<${name}/src=x>`, `<${name}\tsrc=x></${name}>`, `<p <${name}>`])
      t.notMatch(shown(text).replace(/^.*?<base target="_blank">/, ''), new RegExp(`</?${name}`, 'i'), text)
  t.match(shown('<p>a <b>b</b></p>'), '<p>a <b>b</b></p>')
})

t.test('mail-preview: links are listed, each once; inline files replace their Content-ID [member.frame]', async (t) => {
  const html = `<a href="https://a.example/?x=1&amp;y">a</a><a HREF='https://a.example/?x=1&y'>b</a>
    <a href=mailto:a@b.example>c</a><a href="javascript:alert(1)">d</a><img src="cid:one@x"><img src=cid:two>`
  t.same(findHrefs(html), ['https://a.example/?x=1&y', 'mailto:a@b.example'])
  t.same(findHrefs(null), [])
  t.same([...referencedIds(html)], ['one@x', 'two'])
  t.match(shown(html, new Map([['one@x', 'data:image/png;base64,AA==']])), '<img src="data:image/png;base64,AA==">')
  t.match(shown(html, new Map([['one@x', 'data:,']])), 'cid:two')
})

t.test('mail-preview: a link of a live mail leads nowhere, one of a test server does [member.frame]', async (t) => {
  for (const text of [
    '<a href=x>',
    '<a/href=x>',
    "<a title='x'HREF = x>",
    '<a title="x"href="x">',
    '<svg><a xlink:href=x>',
  ])
    t.notMatch(shown(text), /[\s/"':]href[\s/>=]/i, text)
  t.match(shown('<p title=href>the href of a link'), '<p title=href>the data-href of a link')
  const test = mailPreview({ text: null, html: '<a href=x>', images: false, mode: 'test', files: new Map() })
  t.match(test.text, '<a href=x>')
})
