/**
 * Names, subjects and values that would be more than text: each is refused with its path, or stands in the mail as what
 * it says, in one field and in one place of the HTML, and the mail's signature holds.
 */
import dns from 'node:dns/promises'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import PostalMime, { type Email } from 'postal-mime'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const NASTY = [
  'a\r\nBcc: evil@list.example',
  'a\nX-Injected: 1',
  'a\r\n\r\n<script>alert(1)</script>',
  'a\rX-Injected: 1',
  'a\u2028X-Injected: 1',
  'a\u0085X-Injected: 1',
  '"quoted" <evil@list.example>, other@list.example',
  "'><script>alert(1)</script>",
  '"onmouseover="alert(1)',
  '&lt;b&gt; & &amp;',
  '{{b}} {{unsubscribeUrl}} {{{a}}}',
  '$& $1 $` %s \\',
  '=?utf-8?q?=0D=0AX-Injected:_1?=',
  'Zoë 😀 \u202eevil\u202c',
  '=3D=0A .',
  'x'.repeat(300),
]
/** Fields that a mail of a broadcast has, each once. */
const FIELDS = ['from', 'to', 'subject', 'list-id', 'list-unsubscribe', 'list-unsubscribe-post', 'feedback-id']

const delivery = await startDelivery({ BASE_URL: 'https://mail.acme.example' })
t.teardown(() => delivery.stop())
const { service, destination, zone } = delivery
const { token } = service.firstRun.liveServer
const mx = await destination('list.example')
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })
const resolver = new dns.Resolver()
resolver.setServers([zone.server])
let number = 0

/** A broadcast to one person, everything in it nasty. Out: its answer. */
async function submit(value: string, parts: { isName: boolean }) {
  number += 1
  const stream = await call('POST /v1/streams', { kind: 'broadcast', name: `News ${number} "<&` })
  const name = parts.isName ? value.slice(0, 100) : 'Ada'
  return call('POST /v1/broadcasts', {
    streamId: stream.json.streamId,
    from: { email: 'news@acme.example', name },
    subject: parts.isName ? 'Subject' : '{{a}}',
    text: 'T[{{a}}]T {{b}}',
    html: '<p title="{{a}}">H[{{a}}]H</p> {{b}}',
    messages: [{ to: { email: `p${number}@list.example`, name }, substitutions: { a: value, b: 'B' } }],
  })
}

/** The mail to a person as its server has it, once it is there. */
function received(person: string): Promise<string> {
  return until(() => {
    for (const { messages, commands } of mx.sessions) {
      const at = commands.filter((line) => /^RCPT/i.test(line)).findIndex((line) => line.includes(`<${person}>`))
      if (at >= 0 && messages[at] !== undefined) return messages[at]
    }
    return null
  }, 30_000)
}

const unescaped = (html: string): string =>
  html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replace(/&#(?:39|x27);/g, "'")
    .replaceAll('&amp;', '&')

const lined = (text: string): string => text.replace(/\r\n?/g, '\n')

let taken = 0

for (const value of NASTY)
  for (const isName of [false, true])
    t.test(
      `nasty: ${encodeURI(value.slice(0, 50))} as ${isName ? 'a name' : 'a subject'} [broadcast.placeholders] [unsubscribe.fields]`,
      async (t) => {
        const { status, json } = await submit(value, { isName })
        if (status !== 202) {
          t.equal(status, 400)
          const paths: string[] = json.issues.map(({ path }: { path: string }) => path)
          t.ok(paths.length > 0 && paths.every((path) => /^(?:from|messages\.0)/.test(path)), paths.join())
          return
        }
        taken += 1
        const raw = await received(`p${number}@list.example`)
        const mail: Email = await PostalMime.parse(raw)
        const keys = mail.headers.map(({ key }) => key)
        for (const field of FIELDS) t.equal(keys.filter((key) => key === field).length, 1, field)
        t.notOk(keys.includes('x-injected') || keys.includes('bcc'), 'no field of its own')
        t.equal(mail.to?.length, 1)
        t.equal(mail.to?.[0]?.address, `p${number}@list.example`)
        t.equal(mail.from?.address, 'news@acme.example')
        const shown = /T\[([\s\S]*)\]T B/.exec(mail.text ?? '')?.[1] ?? ''
        t.equal(shown, lined(value), 'the text says what the value says')
        const [, title = '', body = ''] = /<p title="([^"]*)">H\[([^<]*)\]H<\/p> B/.exec(mail.html ?? '') ?? []
        t.equal(lined(unescaped(body)), lined(value), 'so does the HTML')
        t.equal(lined(unescaped(title)), lined(value), 'and an attribute')
        const { results } = await dkimVerify(Buffer.from(raw, 'latin1'), {
          resolver: (name: string) => resolver.resolveTxt(name),
        })
        t.ok(results.length > 0 && results.every(({ status }) => status.result === 'pass'))
      },
    )

t.test('nasty: what is only odd goes out', async (t) => {
  t.ok(taken > NASTY.length, `${taken} were taken`)
})
