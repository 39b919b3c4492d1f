/** hostile-mail - mail that is made to make a verifier slow */
import type { DkimVerdict } from '../../../schemas/inbound.ts'
import { MAIL_BYTES_MAX } from '../../../schemas/limits.ts'

export const FROM = 'From: a@a.example\r\n'

/** A signature that cannot hold. */
export const signature = (canon: string, names = 'from'): string =>
  `DKIM-Signature: v=1; a=rsa-sha256; c=${canon}; d=a.example; s=s; h=${names}; bh=AAAA; b=AAAA\r\n`

export type HostileMail = [what: string, head: string, piece: string, verdict: DkimVerdict | null]

/** Mails that would make a verifier slow. Their bodies are filled up to the accepted size. */
export const HOSTILE_MAILS: readonly HostileMail[] = [
  ...['relaxed/relaxed', 'simple/simple'].flatMap((canon): HostileMail[] =>
    [' ', '\r\n', '\n', '\r', ' \r\n', 'a\r', 'a', 'words and words\r\n', '\t\n'].map((piece) => [
      `${canon} of ${JSON.stringify(piece)}`,
      signature(canon) + FROM,
      piece,
      'fail',
    ]),
  ),
  ['10,000 signatures', signature('simple/simple').repeat(10_000) + FROM, 'a', null],
  ['900 signatures', signature('simple/relaxed').repeat(900) + FROM, ' a', 'fail'],
  [
    'ten canonical forms',
    ['simple', 'relaxed'].map((canon) => signature(`relaxed/${canon}`).repeat(5)).join('') + FROM,
    'a ',
    'fail',
  ],
  [
    'names without end',
    signature('simple/simple', `from:${'x:'.repeat(7000)}y`).repeat(10) + 'x: a\r\n'.repeat(900) + FROM,
    'a',
    'fail',
  ],
  ['folds', `Subject: a\r\n${' a\r\n'.repeat(9900)}${signature('simple/simple')}${FROM}`, 'a', 'fail'],
]

/** The largest mail that is taken, of a head and a piece again and again, in memory that threads share. */
export function fillMail(head: string, piece: string): Buffer {
  const start = Buffer.from(`${head}\r\n`)
  const raw = Buffer.from(new SharedArrayBuffer(MAIL_BYTES_MAX)).fill(piece)
  raw.set(start)
  return raw
}
