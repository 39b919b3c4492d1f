/**
 * senders - programs that send one mail with the settings that docs/start/smtp.md lists for this machine
 *
 * The settings are the code spans of the column "On your machine". Each program runs in a directory with `data/` and
 * with the key in SENDWRIGHT_TOKEN, and gives its mail the name of the sender as its subject.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../machine/root.ts'

export interface Sender {
  /** As in the first column. */
  readonly name: string
  /** Commands without which it is skipped. */
  readonly needs: readonly string[]
  readonly language: 'sh' | 'js' | 'python'
  readonly code: string
}

type Make = (spans: readonly string[], all: ReadonlyMap<string, readonly string[]>) => string

const FROM = 'you@simulator.test'
const TO = 'person@simulator.test'
/** Settings of frameworks, which are not installed here. */
const TEXTS = ['Django', 'Rails', 'Laravel', 'WordPress', 'Postfix']

const MSMTP: Make = (spans) => {
  const lines = spans.map((span) => span.replace('KEY', '$SENDWRIGHT_TOKEN')).join('\n')
  return `umask 077\nexport HOME="$PWD"\ncat >.msmtprc <<EOF\n${lines}\nEOF\n`
}

const MAKERS: Readonly<Record<string, Pick<Sender, 'needs' | 'language'> & { make: Make }>> = {
  nodemailer: {
    needs: [],
    language: 'js',
    make: ([call]) => `import { readFileSync } from 'node:fs'
import { createTransport } from '${import.meta.resolve('nodemailer')}'
const KEY = process.env.SENDWRIGHT_TOKEN
await ${call}.sendMail({ from: '${FROM}', to: '${TO}', subject: 'nodemailer', text: 'T' })`,
  },
  'Python smtplib': {
    needs: ['python3'],
    language: 'python',
    make: (spans) => `import os
from smtplib import SMTP
from ssl import create_default_context
KEY = os.environ["SENDWRIGHT_TOKEN"]
${spans.join('\n')}
smtp.sendmail("${FROM}", "${TO}", "From: ${FROM}\\nTo: ${TO}\\nSubject: Python smtplib\\n\\nT\\n")
smtp.quit()`,
  },
  swaks: {
    needs: ['swaks'],
    language: 'sh',
    make: ([command = '']) => `${command.replace('KEY', '"$SENDWRIGHT_TOKEN"')} --header 'Subject: swaks'`,
  },
  msmtp: {
    needs: ['msmtp'],
    language: 'sh',
    make: (spans, all) =>
      `${MSMTP(spans, all)}printf 'From: ${FROM}\\nTo: ${TO}\\nSubject: msmtp\\n\\nT\\n' | msmtp -t`,
  },
  'PHP mail()': {
    needs: ['php', 'msmtp'],
    language: 'sh',
    make: ([setting], all) => `${MSMTP(all.get('msmtp') ?? [], all)}
echo '<?php exit(mail("${TO}", "PHP mail()", "T", "From: ${FROM}") ? 0 : 1);' | php -d '${setting}'`,
  },
}

/** The programs. Throws Error if the table has a sender that is neither executed nor text. */
export function sendersOf(document: string): Sender[] {
  const text = readFileSync(join(ROOT, document), 'utf8')
  const [, table = ''] = /^\| Sender \| On your machine \|.*\n\|.*\n((?:\|.*\n)+)/m.exec(text) ?? []
  const rows = table.trimEnd().split('\n')
  const spans = new Map<string, readonly string[]>()
  for (const row of rows) {
    const [first = '', here = ''] = row.slice(2).split(' | ')
    const name = first.replace(/ \(.*`\)$/, '').replaceAll('`', '')
    spans.set(
      name,
      [...here.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span),
    )
  }
  const run = [...spans].filter(([name]) => !TEXTS.some((one) => name.startsWith(one)))
  return run.map(([name, own]) => {
    const maker = MAKERS[name]
    if (maker === undefined) throw new Error(`${document}: ${name} is not run`)
    return { name, needs: maker.needs, language: maker.language, code: maker.make(own, spans) }
  })
}
