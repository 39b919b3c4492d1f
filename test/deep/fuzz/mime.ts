/**
 * 10,000 mails of the corpus with bytes cut, doubled, moved and replaced: the parser ends each without a fault,
 * reports within its limits, and leaves the raw bytes unchanged.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { HARD_ISSUES, SOFT_ISSUES } from '../../../schemas/inbound.ts'
import { attachmentBytes } from '../../../src/mail/mime/body.ts'
import { parseReceivedMail, type ReceivedMail } from '../../../src/mail/mime/received-mail.ts'
import { makeMutator } from '../../support/clients/mime-mutate.ts'
import { makeCorpus } from '../../support/peers/mime-corpus.ts'

const SEED = Number(process.env.SEED ?? 21)
const MAILS = 10_000
const ISSUES: ReadonlySet<string | null> = new Set([null, ...HARD_ISSUES, ...SOFT_ISSUES])

/** Every text of a result, at any place. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : []
}

/** The forbidden parts of a result. */
function faults(raw: Buffer, mail: ReceivedMail): string[] {
  const found: string[] = []
  const shown = [
    mail.subject,
    mail.messageIdHeader,
    mail.inReplyTo,
    ...mail.references,
    ...mail.headers.map(({ value }) => value),
  ]
  if (!ISSUES.has(mail.parseIssue)) found.push(`issue ${mail.parseIssue}`)
  if (shown.some((value) => value !== null && (value.length > 4000 || /[\x00-\x08\x0a-\x1f\x7f-\x9f]/.test(value))))
    found.push('value')
  for (const text of texts(mail)) {
    if (/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(text)) found.push(`control in ${JSON.stringify(text)}`)
    if (/\p{Surrogate}/u.test(text)) found.push('surrogate')
  }
  if (mail.hasText !== (mail.text !== null) && mail.contentOmitted === null) found.push('hasText')
  for (const [at, { position, name, size, place }] of mail.attachments.entries()) {
    if (position !== at || place.start + place.length > raw.length) found.push('place')
    if (attachmentBytes(raw, place).length !== size) found.push('size')
    if (name !== null && (name === '' || /[/\\\x00-\x1f]|^\./.test(name))) found.push(`name ${name}`)
  }
  return found
}

t.test(`fuzz: ${MAILS} mutated mails are parsed (seed ${SEED})`, async (t) => {
  const corpus = makeCorpus(SEED, 200).map(({ raw }) => raw)
  const mutate = makeMutator(SEED)
  const issues = new Map<string | null, number>()
  for (let number = 0; number < MAILS; number += 1) {
    const raw = mutate(corpus[number % corpus.length] as Buffer)
    const before = createHash('sha256').update(raw).digest('hex')
    const mail = parseReceivedMail(raw)
    const found = faults(raw, mail)
    if (found.length > 0 || createHash('sha256').update(raw).digest('hex') !== before) {
      t.same(found, [], `mail ${number}: ${raw.toString('base64')}`)
      return
    }
    issues.set(mail.parseIssue, (issues.get(mail.parseIssue) ?? 0) + 1)
  }
  t.ok(issues.size > 8, JSON.stringify([...issues]))
  t.ok((issues.get(null) ?? 0) > 100 && (issues.get(null) ?? 0) < MAILS - 1000, 'some are whole, many are not')
})
