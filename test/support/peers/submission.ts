/** submission - a client of SMTP submission: encrypted and logged in over a real socket, message by message. */

import { openDialog, type SmtpDialog } from './smtp-dialog.ts'

/** The token of AUTH PLAIN. RFC 4616 2 */
export function plainToken(password: string, username = 'x'): string {
  return Buffer.from(`\0${username}\0${password}`).toString('base64')
}

/** Opens a session, encrypts it, and logs in. Throws if that is refused. */
export async function openSubmission(
  port: number,
  { password, username = 'x' }: { password: string; username?: string },
): Promise<SmtpDialog> {
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.test')
  const ready = await dialog.say('STARTTLS')
  if (!ready.startsWith('220')) throw new Error(ready)
  await dialog.upgrade()
  await dialog.say('EHLO client.test')
  const reply = await dialog.say(`AUTH PLAIN ${plainToken(password, username)}`)
  if (!reply.startsWith('235')) throw new Error(reply)
  return dialog
}

/** Submits one message. Returns the reply to its envelope if that is a refusal, otherwise that to its final dot. */
export async function submitMail(dialog: SmtpDialog, recipients: readonly string[], mail: string): Promise<string> {
  const begun = await dialog.say('MAIL FROM:<app@client.test>')
  if (!begun.startsWith('250')) return begun
  for (const recipient of recipients) {
    const reply = await dialog.say(`RCPT TO:<${recipient}>`)
    if (!reply.startsWith('250')) return reply
  }
  await dialog.say('DATA')
  const lines = mail.replace(/\r?\n/g, '\r\n').replace(/^\./gm, '..')
  const end = lines === '' || lines.endsWith('\r\n') ? '' : '\r\n'
  dialog.write(Buffer.from(`${lines}${end}.\r\n`, 'latin1'))
  return dialog.say(null)
}
