/** meaning - the meaning of an event in words: the class of the answer, and the next step */
import type { MessageEvent } from '../../../../../schemas/message.ts'

interface Meaning {
  readonly text: string
  /** Whether the address is on the suppression list now. */
  readonly isSuppressed: boolean
}

/** By class of a permanent refusal. */
const BOUNCES: Readonly<Record<string, string>> = {
  InvalidRecipient: 'The mailbox does not exist.',
  InactiveMailbox: 'The mailbox exists but is no longer in use.',
  BadDomain: 'The domain does not exist or takes no mail.',
  QuotaIssues: 'The mailbox is full. Try again in some days, or ask the recipient for another address.',
  SpamBlock: 'The receiving server takes the sending address or domain for a source of spam. Its reply names the list.',
  PolicyRelated: 'A policy of the receiving server rejects this mail. See its reply.',
  ContentRelated: 'Something in the content or its size was refused. Look at links, attachments and size.',
  AuthenticationFailed: 'SPF, DKIM or DMARC did not pass. Check the records of the sending domain.',
  InvalidSender: 'The sender was refused. Check the From address and the records of its domain.',
  RelayDenied: 'That server does not take mail for this domain. The domain’s MX records may be wrong.',
  RoutingErrors: 'No mail server of the domain could be used. Its records may be wrong.',
  NoAnswerFromHost: 'No mail server of the domain answered.',
  BadConnection: 'The connection to the receiving server broke each time.',
  BadConfiguration: 'The receiving server is misconfigured. Its operator has to fix it.',
  ProtocolErrors: 'The receiving server answered something that is no SMTP.',
  Suppressed: 'The address was on the stream’s suppression list, so nothing was sent.',
  Expired: 'It was deferred for 48 hours and then given up.',
}

const DEFERRALS: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/gr[ae]y-? ?list/i, 'The server accepts mail of unknown senders only at a second attempt.'],
  [/\b4\.2\.2\b|full|quota/i, 'The mailbox is full.'],
  [/\b4\.7\.\d+\b|rate|too many|throttl|limit/i, 'The server limits mail from this sender, or does not trust it yet.'],
  [/\b4\.4\.\d+\b|connect|timed? ?out/i, 'The server could not be reached, or broke the connection.'],
]

/** The meaning of an event. */
export function explainEvent({ event, details }: MessageEvent): Meaning | null {
  if (event === 'bounced') return explainBounce(details)
  if (event === 'spam_complaint')
    return {
      text: 'The recipient reported this message as spam. The address is suppressed, and only the operator can lift that.',
      isSuppressed: true,
    }
  if (event === 'unsubscribed') {
    const how = details.source === 'one_click' ? 'with their mail program’s button' : 'with the link in the mail'
    return { text: `The recipient unsubscribed ${how} and gets no further mail of the stream.`, isSuppressed: true }
  }
  return event === 'deferred' ? explainDeferral(details.response ?? '') : null
}

function explainBounce({ classification, hard, expired }: MessageEvent['details']): Meaning {
  const why = expired
    ? (BOUNCES.Expired as string)
    : (BOUNCES[classification ?? ''] ?? 'The receiving server rejected it permanently.')
  if (hard === true) return { text: `${why} The address is now on the stream’s suppression list.`, isSuppressed: true }
  return {
    text: classification === 'Suppressed' ? why : `${why} The address is not suppressed.`,
    isSuppressed: classification === 'Suppressed',
  }
}

function explainDeferral(response: string): Meaning {
  const known = DEFERRALS.find(([pattern]) => pattern.test(response))?.[1]
  return { text: `${known ?? 'The server asks to try later.'} It is retried automatically.`, isSuppressed: false }
}
