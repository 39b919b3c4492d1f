/** send - mails with aggregate reports, signed by their reporters or not, over SMTP into a service. */
import { joinMail, publicKeyText, signField } from '../peers/sign-mail.ts'
import type { SmtpDialog } from '../peers/smtp-dialog.ts'
import type { Zone } from '../peers/zone.ts'
import { type ReportSample, sampleMail } from './texts.ts'

/** Publishes the records with which mail of a reporter passes DMARC. */
export function publishReporter(zone: Pick<Zone, 'set'>, reporter: string): void {
  zone.set(`s._domainkey.${reporter}`, {
    type: 'TXT',
    data: (`v=DKIM1; p=${publicKeyText('rsa')}`.match(/.{1,255}/g) ?? []) as string[],
  })
  zone.set(`_dmarc.${reporter}`, { type: 'TXT', data: ['v=DMARC1; p=reject'] })
}

/** The bytes of a report's mail. */
export function reportMail(sample: ReportSample, to: string, { isSigned }: { readonly isSigned: boolean }): Buffer {
  const mail = sampleMail(sample, { from: `noreply@${sample.reporter}`, to })
  const tags = `v=1; a=rsa-sha256; c=relaxed/relaxed; d=${sample.reporter}; s=s; h=from:subject; bh={bh}; b={b}`
  const signing = { names: ['from', 'subject'], canon: 'relaxed/relaxed', key: 'rsa' } as const
  const field = signField(mail, { field: `DKIM-Signature: ${tags}`, ...signing })
  return joinMail({ ...mail, fields: isSigned ? [field, ...mail.fields] : mail.fields })
}

/** Sends a mail in an open dialog. Returns the reply to the final dot, or the first refusal. */
export async function sayMail(dialog: SmtpDialog, to: string, raw: Buffer): Promise<string> {
  const said = [await dialog.say('MAIL FROM:<>'), await dialog.say(`RCPT TO:<${to}>`)]
  const refusal = said.find((reply) => !reply.startsWith('250'))
  if (refusal !== undefined) return refusal
  const reply = await dialog.say('DATA')
  if (!reply.startsWith('354')) return reply
  dialog.write(
    Buffer.concat([Buffer.from(raw.toString('latin1').replace(/^\./gm, '..'), 'latin1'), Buffer.from('\r\n.\r\n')]),
  )
  return dialog.say(null)
}
