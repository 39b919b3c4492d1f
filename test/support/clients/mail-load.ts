/** mail-load - senders that deliver mail to the listener, and a ledger of the replies to each of them. */

import { until } from '../machine/until.ts'
import { openDialog, type SmtpDialog } from '../peers/smtp-dialog.ts'

const WAIT_MS = 60_000
const LARGE_BYTES = 100_000

/** One mail that was sent once. */
export interface SentMail {
  readonly subject: string
  /** With CRLF, as it has to come back. */
  readonly raw: string
  /** How many recipients it had. */
  readonly copies: number
  /** The reply to its end, or '' if the connection ended before. */
  readonly reply: string
}

export interface MailLoad {
  readonly port: number
  readonly recipients: readonly string[]
  readonly senders: number
  /** Begins the subject of each mail; the rest is a number. */
  readonly name: string
  /** Whether to continue. In: mails begun so far. */
  readonly goOn: (begun: number) => boolean
  readonly bytes?: number
  /** One mail in so many is as large as `LARGE_BYTES`, which is more than a frame of the content store. */
  readonly largeIn?: number
}

/** Sends each mail once, whatever its result. A sender whose connection ends opens another one. */
export async function sendMails(load: MailLoad): Promise<SentMail[]> {
  const { senders, goOn } = load
  const sent: SentMail[] = []
  let begun = 0
  const work = async (): Promise<void> => {
    let dialog: SmtpDialog | null = null
    while (goOn(begun)) {
      const number = begun
      begun += 1
      dialog ??= await connect(load.port)
      const mail = makeMail(load, number)
      const reply = await transmit(dialog, load.recipients, mail.raw)
      // A mail that never reached DATA was not sent.
      if (reply !== null) sent.push({ ...mail, copies: load.recipients.length, reply })
      if (reply === null || reply === '') {
        dialog.end()
        dialog = null
      }
    }
    dialog?.end()
  }
  await Promise.all(Array.from({ length: senders }, work))
  return sent
}

function makeMail({ name, bytes: small = 2_000, largeIn = 0 }: MailLoad, number: number) {
  const bytes = largeIn > 0 && number % largeIn === 0 ? LARGE_BYTES : small
  const subject = `${name} ${number}`
  const line = `${String(number % 10).repeat(76)}\r\n`
  const body = line.repeat(Math.ceil(bytes / line.length))
  return { subject, raw: `From: sender${number % 7}@example.net\r\nSubject: ${subject}\r\n\r\n${body}` }
}

function connect(port: number): Promise<SmtpDialog> {
  return until(async () => {
    const dialog = await openDialog(port).catch(() => null)
    if (dialog?.greeting.startsWith('220') !== true) {
      dialog?.end()
      return null
    }
    await dialog.say('EHLO client.example')
    return dialog
  }, WAIT_MS)
}

/** The reply to a mail's end, '' if there was none, null if it never reached DATA. */
async function transmit(dialog: SmtpDialog, recipients: readonly string[], raw: string): Promise<string | null> {
  if (!(await dialog.say('MAIL FROM:<sender@example.net>')).startsWith('250')) return null
  for (const to of recipients) if (!(await dialog.say(`RCPT TO:<${to}>`)).startsWith('250')) return null
  if (!(await dialog.say('DATA')).startsWith('354')) return null
  dialog.write(raw)
  return dialog.say('.')
}
