/**
 * mime-corpus - mails drawn from a seed with known contents, with which parsers are compared
 *
 * Charsets, transfer encodings, structures and ways to write a name are combined as real writers combine them.
 */
import iconv from 'iconv-lite'
import { mailOf } from './mime-mail.ts'

/** A mail, and its known contents. */
export interface Sample {
  readonly raw: Buffer
  readonly subject: string
  readonly text: string | null
  readonly html: string | null
  readonly files: readonly {
    readonly name: string
    readonly bytes: Buffer
    readonly contentType: string
    readonly encoding: string
  }[]
  /** Some of the text is windows-1252 or iso-8859-1. */
  readonly isLatin: boolean
}

type Draw = <T>(choices: readonly T[]) => T

const TEXTS: readonly (readonly [charset: string, text: string])[] = [
  ['us-ascii', 'Plain words.\r\nAnother line, with = and _ and a.b.'],
  ['utf-8', 'Größe, naïve, “quoted” — 日本語 and 😀.\r\n.dot\r\nFrom here'],
  ['iso-8859-1', 'Grüße aus Köln, señor'],
  ['windows-1252', '“Curly” – 100 €'],
  ['iso-8859-15', 'Œuvre à 10 €'],
  ['koi8-r', 'Привет, мир'],
  ['windows-1251', 'Добрый день'],
  ['shift_jis', '日本語のメール'],
  ['euc-jp', '日本語のメール'],
  ['gb18030', '中文邮件'],
  ['big5', '繁體中文'],
  ['euc-kr', '한국어 메일'],
]
const NAMES = ['report.pdf', 'my report (final).pdf', 'größe.txt', '日本語.png', `${'long '.repeat(20)}name.txt`]
const TYPES = ['application/pdf', 'image/png', 'application/octet-stream', 'text/csv']

/** Draws `count` samples. */
export function makeCorpus(seed: number, count: number): Sample[] {
  let state = seed
  const draw: Draw = (choices) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return choices[Math.floor((state / 2 ** 32) * choices.length)] as (typeof choices)[number]
  }
  return Array.from({ length: count }, (_, number) => makeSample(draw, number))
}

function makeSample(draw: Draw, number: number): Sample {
  const kind = draw(['plain', 'html', 'alternative', 'mixed', 'related', 'deep', 'two texts'])
  const [, subject] = draw(TEXTS)
  const line = `${subject.split('\r\n')[0]} ${number}`
  const head = `From: =?utf-8?b?${b64('Ädä')}?= <ada@mail.example>\nTo: b@mail.example\nSubject: ${words(draw, line)}\nMIME-Version: 1.0\n`
  const parts = { text: drawText(draw, 'plain'), html: drawText(draw, 'html'), second: drawText(draw, 'plain') }
  const files = Array.from({ length: draw([1, 1, 2, 3]) }, () => drawFile(draw))
  const wrap = (type: string, bodies: readonly Buffer[]): Buffer => joinParts(draw, { type, number, bodies })
  const attachments = files.map(({ part }) => part)
  const made: Record<string, [Buffer, string | null, string | null, boolean]> = {
    plain: [parts.text.part, parts.text.text, null, false],
    html: [parts.html.part, null, parts.html.text, false],
    alternative: [wrap('alternative', [parts.text.part, parts.html.part]), parts.text.text, parts.html.text, false],
    mixed: [wrap('mixed', [parts.text.part, ...attachments]), parts.text.text, null, true],
    related: [wrap('related', [parts.html.part, ...attachments]), null, parts.html.text, true],
    deep: [
      wrap('mixed', [wrap('alternative', [parts.text.part, wrap('related', [parts.html.part])]), ...attachments]),
      parts.text.text,
      parts.html.text,
      true,
    ],
    'two texts': [
      wrap('mixed', [parts.text.part, ...attachments, parts.second.part]),
      `${parts.text.text}\n${parts.second.text}`,
      null,
      true,
    ],
  }
  const [body, text, html, hasFiles] = made[kind] as [Buffer, string | null, string | null, boolean]
  return {
    raw: Buffer.concat([mailOf(head), body]),
    subject: line,
    text,
    html,
    files: hasFiles ? files : [],
    isLatin: Object.values(parts).some(({ isLatin }) => isLatin),
  }
}

function drawText(draw: Draw, kind: 'plain' | 'html'): { part: Buffer; text: string; isLatin: boolean } {
  const [charset, words] = draw(TEXTS)
  const text = kind === 'html' ? `<p>${words}</p>` : words
  const bytes = charset === 'us-ascii' ? Buffer.from(text) : iconv.encode(text, charset)
  const encoding = draw(
    charset === 'us-ascii' ? ['7bit', 'quoted-printable', 'base64'] : ['8bit', 'quoted-printable', 'base64'],
  )
  const head = `Content-Type: text/${kind}; charset=${draw([charset, `"${charset}"`, charset.toUpperCase()])}\nContent-Transfer-Encoding: ${encoding}\n\n`
  return {
    part: Buffer.concat([mailOf(head), encode(draw, { encoding, bytes })]),
    text: text.replaceAll('\r\n', '\n'),
    isLatin: /-1252$|-1$/.test(charset),
  }
}

function drawFile(draw: Draw): Sample['files'][number] & { part: Buffer } {
  const name = draw(NAMES)
  const contentType = draw(TYPES)
  const bytes = Buffer.from(Array.from({ length: draw([0, 1, 57, 58, 4000]) }, (_, at) => (at * 37) % 256))
  const encoding = draw(['base64', 'quoted-printable'])
  const head = `Content-Type: ${contentType}\nContent-Disposition: attachment; ${nameParameter(draw, name)}\nContent-Transfer-Encoding: ${encoding}\n\n`
  return { name, bytes, contentType, encoding, part: Buffer.concat([mailOf(head), encode(draw, { encoding, bytes })]) }
}

function nameParameter(draw: Draw, name: string): string {
  const percent = encodeURIComponent(name).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  const pieces = percent.match(/(?:%..|[^%]){1,30}/g) ?? []
  return draw([
    `filename="=?utf-8?b?${b64(name)}?="`,
    `filename*=utf-8''${percent}`,
    pieces.map((piece, at) => `filename*${at}*=${at === 0 ? "utf-8''" : ''}${piece}`).join(';\n '),
  ])
}

function words(draw: Draw, text: string): string {
  const half = Math.floor(text.length / 2)
  const q = (part: string): string =>
    [...Buffer.from(part)].map((octet) => `=${octet.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  return draw([
    `=?utf-8?b?${b64(text)}?=`,
    `=?UTF-8?Q?${q(text.slice(0, half))}?=\n =?UTF-8?Q?${q(text.slice(half))}?=`,
  ])
}

const b64 = (text: string): string => Buffer.from(text).toString('base64')

function encode(draw: Draw, { encoding, bytes }: { encoding: string; bytes: Buffer }): Buffer {
  if (encoding === 'base64')
    return Buffer.from(bytes.toString('base64').replace(new RegExp(`.{1,${draw([76, 60, 4])}}(?!$)`, 'g'), '$&\r\n'))
  if (encoding !== 'quoted-printable') return bytes
  const isText = bytes.includes('\r\n')
  const octets = [...bytes].map((octet, at) => {
    if (isText && (octet === 10 || octet === 13)) return String.fromCharCode(octet)
    const isPlain = octet > 32 && octet < 127 && octet !== 61
    return isPlain || (octet === 32 && at + 1 < bytes.length)
      ? String.fromCharCode(octet)
      : `=${octet.toString(16).toUpperCase().padStart(2, '0')}`
  })
  return Buffer.from(octets.map((octet, at) => (at % 20 === 19 && octet.length > 1 ? `${octet}=\r\n` : octet)).join(''))
}

function joinParts(
  draw: Draw,
  { type, number, bodies }: { type: string; number: number; bodies: readonly Buffer[] },
): Buffer {
  const boundary = draw([`b-${type}-${number}`, `=_${type}'()+,-./:=?${number}`, `----=_Part ${type} ${number}`])
  const inner = bodies.flatMap((body) => [mailOf(`--${boundary}\n`), body, mailOf('\n')])
  const before = draw(['', 'This is a multi-part message in MIME format.\n'])
  return Buffer.concat([
    mailOf(`Content-Type: multipart/${type};\n\tboundary="${boundary}"\n\n${before}`),
    ...inner,
    mailOf(`--${boundary}--\n${draw(['', 'epilogue\n'])}`),
  ])
}
