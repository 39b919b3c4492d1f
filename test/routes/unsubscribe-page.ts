/**
 * unsubscribe-page - every page in every language, names that try to be more than names, and which language a reader
 * gets.
 */
import t from 'tap'
import { formatPage, type PageView, pageReply } from '../../src/routes/unsubscribe-page.ts'
import { chooseLanguage, LANGUAGES, PAGE_TEXTS } from '../../src/routes/unsubscribe-texts.ts'

const KINDS: readonly PageView['kind'][] = [
  'ask',
  'clicked',
  'listed',
  'undone',
  'late',
  'gone',
  'forged',
  'unavailable',
]
const FROM = { address: 'news@acme.test', name: 'Acme' }

t.test('unsubscribe-page: each language has its own words for each text [unsubscribe.page]', async (t) => {
  const said = new Map<string, string>()
  for (const language of LANGUAGES) {
    const texts = PAGE_TEXTS[language]
    t.same(Object.keys(texts), Object.keys(PAGE_TEXTS.en))
    t.equal(texts.ask.split('%').length, 2)
    for (const [name, text] of Object.entries(texts)) {
      t.notMatch(text, /[<>&"']/, `${language} ${name} needs no escape`)
      if (name !== 'title' && name !== 'unsubscribe') t.notOk(said.has(text), text)
      said.set(text, language)
    }
    for (const kind of KINDS) {
      const html = formatPage({ kind, from: FROM, ...(kind === 'ask' && { action: 'confirm' }) }, language)
      t.match(html, new RegExp(`^<!doctype html>\n<html lang="${language}">`))
      t.equal(html.includes('<form'), kind === 'ask')
      t.equal(html.includes('news@acme.test'), kind === 'ask')
    }
  }
})

t.test('unsubscribe-page: anything in a name is text [unsubscribe.page]', async (t) => {
  const nasty = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "' onclick='x",
    '</style><style>*{display:none}',
    '&lt;b&gt;',
    '$& $1 $` %',
    '\u202egpj.exe',
    '\u2066\u2067',
    'a\u0000b\r\nc',
    '\ud800',
  ]
  for (const name of nasty)
    for (const language of LANGUAGES) {
      const html = formatPage({ kind: 'ask', from: { address: 'a"<b>@acme.test', name }, action: 'confirm' }, language)
      const tags = [...html.matchAll(/<\/?([a-z0-9]+)/g)].map(([, tag]) => tag)
      t.same(
        tags.filter(
          (tag) =>
            !['html', 'head', 'meta', 'title', 'style', 'body', 'main', 'h1', 'p', 'bdi', 'form', 'button'].includes(
              tag as string,
            ),
        ),
        [],
      )
      t.equal(tags.filter((tag) => tag === 'style').length, 2)
      t.notMatch(html.split('</style>')[1], /[\u0000-\u0009\u202a-\u202e\u2066-\u2069]/)
    }
})

t.test('unsubscribe-page: a sender that is no longer known is not named [unsubscribe.page]', async (t) => {
  t.match(formatPage({ kind: 'ask', from: { address: '', name: null }, action: 'c' }, 'en'), PAGE_TEXTS.en.askNoSender)
})

t.test('unsubscribe-page: status and headers [unsubscribe.page]', async (t) => {
  t.equal(pageReply({ kind: 'ask' }, 'en').status, 200)
  t.equal(pageReply({ kind: 'gone' }, 'en').status, 200)
  t.equal(pageReply({ kind: 'forged' }, 'en').status, 404)
  t.match(pageReply({ kind: 'unavailable' }, 'en'), { status: 503, headers: { 'Retry-After': '5' } })
})

for (const [header, language] of [
  ['', 'en'],
  ['de', 'de'],
  ['de-AT,de;q=0.9,en;q=0.8', 'de'],
  ['ja, fr;q=0.5', 'fr'],
  ['en;q=0.1, nl;q=0.9', 'nl'],
  ['pt-BR', 'pt'],
  ['IT', 'it'],
  ['es;q=0, en', 'en'],
  ['es;q=0', 'en'],
  ['*', 'en'],
  ['fr;q=x, de', 'de'],
  [`${'xx,'.repeat(50)}de`, 'en'],
  [';;;,,,=', 'en'],
] as const)
  t.test(`unsubscribe-page: "${header.slice(0, 40)}" reads ${language} [unsubscribe.page]`, async (t) => {
    t.equal(chooseLanguage(header), language)
  })
