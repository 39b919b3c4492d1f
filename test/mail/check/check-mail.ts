/** check-mail - findings about a message, each at its line; hostile HTML takes linear time. */
import t from 'tap'
import { checkMail } from '../../../src/mail/check/check-mail.ts'

const check = (html: string | null, text: string | null = 'x') => checkMail({ html, text, lacksUnsubscribe: false })
const named = (html: string) => check(html).findings.map(({ check, line, message }) => `${check} ${line} ${message}`)

t.test('check-mail: what mail clients drop, once, at its first line [message.checks]', async (t) => {
  const html = [
    '<style>',
    '  /* display:grid',
    '  .a { display : FLEX; width: calc(1px + 2vw) }',
    '  @media (prefers-color-scheme: dark) { a:hover { color: red } }',
    '  @font-face { font-family: x }',
    '</style>',
    '<video src="x.mp4"></video><video></video>',
    '<p style="display: grid; padding: 1px" hidden>',
    '<input type="TEXT"><img src="a.avif?x=1" alt="" srcset="b.png 2x">',
    '<a href="#top">Top</a>',
  ].join('\n')
  const open = html.replace('/* display:grid', '/* display:grid */')
  const found = named(open)
  for (const wanted of [
    'client_support 3 display:flex: ',
    'client_support 3 CSS calc() function: ',
    'client_support 3 vw unit: ',
    'client_support 4 @media (prefers-color-scheme): ',
    'client_support 4 :hover: ',
    'client_support 5 @font-face: ',
    'client_support 7 <video> element: ',
    'client_support 8 display:grid: ',
    'client_support 8 hidden attribute: ',
    'client_support 9 <input type="text"> element: ',
    'client_support 9 AVIF image format: ',
    'client_support 9 srcset and sizes attributes: ',
    'client_support 10 Local anchors: ',
  ])
    t.equal(found.filter((one) => one.startsWith(wanted)).length, 1, wanted)
  t.notOk(found.some((one) => /padding|calc.*calc/.test(one)))
  t.notOk(
    named(html).some((one) => one.includes('font-face')),
    'a comment that does not end',
  )
  const [video] = check('<video>').findings
  t.match(video, { clients: { full: 20, partial: 5, none: 76 }, url: /caniemail\.com\/features\/html-video/ })
  t.same(named('<!-- <video> --><script><video></script><p>Hello <b>you</b>'), [])
})

t.test('check-mail: what a message lacks [message.checks]', async (t) => {
  t.match(named('<p>x')[0], undefined)
  t.match(check('<p>x', null).findings, [{ check: 'missing_text', line: null }])
  t.same(check(null, 'x').findings, [])
  t.match(check(`<p>${'é'.repeat(52_300)}`).findings, [{ check: 'html_too_large', message: /104603 bytes/ }])
  t.same(check('x'.repeat(104_448)).findings, [])
  t.match(check('\n<img src="a.png"><img src="b.png" alt="">').findings, [
    { check: 'image_alt', line: 2, message: /a\.png/ },
  ])
  const broadcast = checkMail({ html: null, text: 'x', lacksUnsubscribe: true })
  t.match(broadcast.findings, [{ check: 'list_unsubscribe' }])
})

t.test('check-mail: links to the web, each once, with its line [message.checks]', async (t) => {
  const html =
    '<a href="https://a.example/?x=1&amp;y">1</a>\n<a href="mailto:x@y.z">2</a><area href="http://b.example">'
  const text = 'One\nhttps://a.example/?x=1&y and\nhttps://c.example.'
  t.same(check(html, text).links, [
    { part: 'html', line: 1, href: 'https://a.example/?x=1&y' },
    { part: 'html', line: 2, href: 'http://b.example' },
    { part: 'text', line: 3, href: 'https://c.example' },
  ])
})

t.test('check-mail: hostile HTML takes linear time, and findings are bounded [message.checks]', async (t) => {
  const n = 60_000
  const texts = {
    images: '<img>\n'.repeat(n),
    links: Array.from({ length: n }, (_, at) => `<a href=http://a.example/${at}>\n`).join(''),
    styles: `<style>${'a{display:flex;width:calc('.repeat(n)}`,
    attributes: `<p ${'style="display:flex" '.repeat(n)}>`,
    comments: `<style>${'/*'.repeat(n)}`,
    open: '<style><'.repeat(n),
    pseudo: `<style>${':a'.repeat(n)}{`,
    numbers: `<style>a{b:${'1a'.repeat(n)}}`,
  }
  for (const [name, html] of Object.entries(texts)) {
    const startedAtMs = performance.now()
    const { findings, links } = check(html)
    const ms = performance.now() - startedAtMs
    t.ok(ms < 1_500, `${name}: ${Math.round(ms)} ms for ${html.length} characters`)
    t.ok(findings.length <= 100 && links.length <= 500, name)
  }
})
