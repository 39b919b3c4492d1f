/**
 * Mails with known contents: our parser reads all of it, and so do mailparser and postal-mime unless they lose
 * something.
 */
import { simpleParser } from 'mailparser'
import PostalMime from 'postal-mime'
import t from 'tap'
import { attachmentBytes } from '../../../../src/mail/mime/body.ts'
import { parseReceivedMail } from '../../../../src/mail/mime/received-mail.ts'
import { makeCorpus, type Sample } from '../../../support/peers/mime-corpus.ts'
import { mailOf } from '../../../support/peers/mime-mail.ts'

const SEED = Number(process.env.SEED ?? 20)
const MAILS = 400
const MAILPARSER = {
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
  keepCidLinks: true,
} as const

interface Read {
  subject: string | null
  text: string | null
  html: string | null
  files: { name: string | null; contentType: string; bytes: Buffer }[]
}

function ours(raw: Buffer): Read {
  const { subject, text, html, attachments } = parseReceivedMail(raw)
  const files = attachments.map(({ name, contentType, place }) => ({
    name,
    contentType,
    bytes: attachmentBytes(raw, place),
  }))
  return { subject, text, html, files }
}

async function byMailparser(raw: Buffer): Promise<Read> {
  const { subject, text, html, attachments } = await simpleParser(raw, MAILPARSER)
  const files = attachments.map(({ filename, contentType, content }) => ({
    name: filename ?? null,
    contentType,
    bytes: content,
  }))
  return { subject: subject ?? null, text: text || null, html: html || null, files }
}

async function byPostalMime(raw: Buffer): Promise<Read> {
  const { subject, text, html, attachments } = await new PostalMime().parse(raw)
  const files = attachments.map(({ filename, mimeType, content }) => ({
    name: filename,
    contentType: mimeType,
    bytes: Buffer.from(content as ArrayBuffer),
  }))
  return { subject: subject ?? null, text: text ?? null, html: html ?? null, files }
}

/** Line ends at the end of a part are the parsers' own taste. */
const tidy = (text: string | null): string | null =>
  text
    ?.replace(/\r?\n/g, '\n')
    .replace(/\n+(?=\n|$)/g, '')
    .trimEnd() ?? null

/** The known differences of one of the others. */
interface Taste {
  isTypeGuessed?: boolean
  losesLatin?: boolean
  isFileChanged?: (file: Sample['files'][number]) => boolean
}

/** It takes the type of application/octet-stream from the name; an empty part has the line end before its boundary. */
const MAILPARSER_TASTE: Taste = {
  isTypeGuessed: true,
  isFileChanged: ({ bytes, encoding }) => bytes.length === 0 && encoding === 'quoted-printable',
}
/**
 * It adds a line end to quoted-printable text, and reads windows-1252 with the decoder of Node, which has C1 controls.
 */
const POSTAL_MIME_TASTE: Taste = { losesLatin: true, isFileChanged: ({ encoding }) => encoding === 'quoted-printable' }

/** The difference between the contents and a parser's result; [] if there is none. */
function differences(read: Read, sample: Sample, taste: Taste = {}): string[] {
  const found: string[] = []
  const compare = (what: string, value: unknown, expected: unknown): void => {
    if (value !== expected) found.push(`${what}: ${JSON.stringify(value)} for ${JSON.stringify(expected)}`)
  }
  compare('subject', read.subject, sample.subject)
  if (!(taste.losesLatin && sample.isLatin)) {
    compare('text', tidy(read.text), tidy(sample.text))
    compare('html', tidy(read.html), tidy(sample.html))
  }
  compare('files', read.files.length, sample.files.length)
  for (const [at, file] of sample.files.entries()) {
    const other = read.files[at]
    compare('name', other?.name, file.name)
    if (!(taste.isTypeGuessed && file.contentType === 'application/octet-stream'))
      compare('type', other?.contentType, file.contentType)
    if (!taste.isFileChanged?.(file)) compare('bytes', other?.bytes.toString('hex'), file.bytes.toString('hex'))
  }
  return found
}

t.test(`oracle: ${MAILS} mails are read as they were written, by all three (seed ${SEED})`, async (t) => {
  const lost = { mailparser: [] as string[], postalMime: [] as string[] }
  for (const [number, sample] of makeCorpus(SEED, MAILS).entries()) {
    const read = ours(sample.raw)
    t.same(differences(read, sample), [], `mail ${number}`)
    t.same([read.text, read.html], [sample.text, sample.html], `mail ${number}, to the last line end`)
    lost.mailparser.push(
      ...differences(await byMailparser(sample.raw), sample, MAILPARSER_TASTE).map((what) => `${number}: ${what}`),
    )
    lost.postalMime.push(
      ...differences(await byPostalMime(sample.raw), sample, POSTAL_MIME_TASTE).map((what) => `${number}: ${what}`),
    )
  }
  t.same(lost.mailparser, [])
  t.same(lost.postalMime, [])
})

t.test('oracle: contents that mailparser loses, and our parser keeps', async (t) => {
  const blanks = mailOf('From: a@mail.example\nContent-Type: multipart/mixed; boundary=b\n\n--b  \n\nkept\n--b--  \n')
  t.equal((await byMailparser(blanks)).text, null, 'blanks after a boundary')
  t.equal(ours(blanks).text, 'kept')
  const attached = mailOf(
    'From: a@mail.example\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nmine\n--b\nContent-Type: message/rfc822\n\nFrom: c@mail.example\n\ntheirs\n--b--\n',
  )
  t.match((await byPostalMime(attached)).text, /theirs/, 'an attached message in the text')
  t.equal(ours(attached).text, 'mine')
  t.equal(ours(attached).files[0]?.bytes.toString(), 'From: c@mail.example\r\n\r\ntheirs')
})
