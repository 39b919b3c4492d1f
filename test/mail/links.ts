/** Links and images: all that a reader could follow are listed, and no input takes more than linear time. */
import t from 'tap'
import { findLinks, type MailLink } from '../../src/mail/links.ts'

const html = (source: string) => findLinks({ text: null, html: source })
const text = (source: string) => findLinks({ text: source, html: null }).links.map(({ href }) => href)
const link = (href: string, words: string): MailLink => ({ part: 'html', href, text: words })

const HTML: readonly [source: string, links: readonly MailLink[]][] = [
  ['<a href="https://a.example/">Reset</a>', [link('https://a.example/', 'Reset')]],
  [
    "<A\nHREF = 'https://a.example/?a=1&amp;b=2' class=x>Two\n  <b>words</b></A> no",
    [link('https://a.example/?a=1&b=2', 'Two words')],
  ],
  ['<a class="a>b" href=https://a.example/x>bare</a>', [link('https://a.example/x', 'bare')]],
  ['<a href="one">1<a href="two">2', [link('one', '1'), link('two', '2')]],
  ['<a href="mailto:a@b.example">&#77;ail &#x26; more</a>', [link('mailto:a@b.example', 'Mail & more')]],
  ['<a href="x"><img src="cid:1" alt="Logo"></a>', [link('x', 'Logo')]],
  ['<!-- <a href="no">no</a> --><a href="yes">yes</a>', [link('yes', 'yes')]],
  ['<style>a > b { content: "<a href=no>" }</style><a href="yes">yes</a>', [link('yes', 'yes')]],
  ['<a name="top">no</a><abbr href="no">no</abbr>', []],
  ['<a href="yes" href="no">first</a>', [link('yes', 'first')]],
  ['1 < 2 <a href="x">y</a>', [link('x', 'y')]],
  ['<a href="x', []],
  ['<', []],
]

t.test('links: of HTML, with their words [message.links]', async (t) => {
  for (const [source, links] of HTML) t.same(html(source).links, links, source)
})

t.test('links: images with their words [message.links]', async (t) => {
  const { images } = html('<img alt="" src="https://a.example/a.png"/><IMG SRC=\'cid:logo\'><img alt="none">')
  t.same(images, [
    { src: 'https://a.example/a.png', alt: '' },
    { src: 'cid:logo', alt: null },
  ])
})

t.test('links: of plain text, without the marks around them [message.links]', async (t) => {
  t.same(text('Open https://a.example/reset?t=1, or (http://b.example/x_(y)) or <HTTPS://c.example/>.'), [
    'https://a.example/reset?t=1',
    'http://b.example/x_(y))',
    'HTTPS://c.example/',
  ])
  t.same(text('nohttps://a.example ftp://b.example www.c.example'), [])
  const both = findLinks({ text: 'https://t.example', html: '<a href="https://h.example">H</a>' }).links
  t.same(
    both.map(({ part }) => part),
    ['html', 'text'],
  )
})

t.test('links: at most 500, and hostile parts take linear time [message.links]', async (t) => {
  t.equal(html('<a href="x">y</a>'.repeat(2_000)).links.length, 500)
  t.equal(html('<img src="x">'.repeat(2_000)).images.length, 500)
  const hostile = [
    '<a href="x">',
    '<a ',
    '<a x=',
    '<a x="',
    "<a x='",
    '<',
    '</',
    '<!--',
    '&',
    '&#',
    '<a href=x>&amp;',
    '<script',
    '<script>',
    '<style></',
    ' ',
    'a/',
    '= ',
    'https://',
    'https://(',
    'https://a.....)))))',
  ]
  const begunAt = performance.now()
  for (const piece of hostile) {
    const source = piece.repeat(Math.ceil((2 * 1024 * 1024) / piece.length))
    findLinks({ text: source, html: source })
  }
  // Quadratic time would be hours.
  t.ok(performance.now() - begunAt < 60_000)
})
