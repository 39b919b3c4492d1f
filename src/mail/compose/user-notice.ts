/**
 * user-notice - the mail to a user about a change of their sign-in
 *
 * Plain text, from the service's own postmaster; marked as auto-generated (RFC 3834 5). It has no link, so that users
 * do not learn to click links in such mail.
 *
 * Spec session.notice
 */

import type { ComposeInput } from './compose.ts'

const TEXTS = {
  totp: ['An authenticator was set up', 'An authenticator was set up for signing in with your address.'],
  'remove-totp': ['Your authenticator was removed', 'The authenticator for signing in with your address was removed.'],
  passkey: ['A passkey was added', 'A passkey was added for signing in with your address.'],
  'remove-passkey': ['A passkey was removed', 'A passkey for signing in with your address was removed.'],
  codes: ['Your recovery codes were replaced', 'New recovery codes were created. The previous ones no longer work.'],
  password: ['Your password was changed', 'The password for signing in with your address was changed.'],
  'operator-link': [
    'Your password was changed with a link of the operator',
    'A new password was set for your address, with a link created by the operator of this service.',
  ],
  'operator-link-factors': [
    'A link of the operator changed your password and removed your second factors',
    'A new password was set for your address, with a link created by the operator of this service. The link also ' +
      'removed your authenticator, passkeys and recovery codes. Your password alone signs you in now.',
  ],
} as const

export interface UserNoticeInput {
  readonly what: keyof typeof TEXTS
  /** Tells this mail from all others. */
  readonly name: string
  readonly atMs: number
  readonly address: string
  readonly serviceDomain: string
}

/** The message. The same input gives the same bytes. */
export function composeUserNotice({ what, name, atMs, address, serviceDomain }: UserNoticeInput): ComposeInput {
  const [subject, opening] = TEXTS[what]
  const at = `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  const help = [
    'If this was you, no action is needed. If not, sign in, choose a new password and end the other sessions',
    'on your own page. If you can no longer sign in, ask an administrator of your account or the operator.',
  ]
  return {
    messageId: name,
    acceptedAtMs: atMs,
    from: { address: `postmaster@${serviceDomain}`, name: 'Sendwright' },
    to: [{ address, name: null }],
    cc: [],
    subject,
    text: [`${opening} It was at ${at}.`, '', ...help, ''].join('\n'),
    html: null,
    headers: { 'Auto-Submitted': 'auto-generated' },
    attachments: [],
    boundarySeed: name,
  }
}
