/**
 * link-mail - the mail that brings someone a link into the dashboard: its purpose and its lifetime
 *
 * Plain text, from the service's own postmaster; marked as made by a machine (RFC 3834 5).
 *
 * Spec link.mail
 */

import type { ComposeInput } from './compose.ts'

export interface LinkMailInput {
  readonly purpose: 'invitation' | 'sign-in' | 'reset' | 'setup'
  /** Distinguishes this mail from all others. */
  readonly name: string
  readonly atMs: number
  readonly endsAtMs: number
  readonly address: string
  /** Name of the account of an invitation. */
  readonly accountName: string | null
  readonly url: string
  readonly serviceDomain: string
}

/** The message of a link. The same input gives the same bytes. */
export function composeLinkMail(input: LinkMailInput): ComposeInput {
  const { name, atMs, address, serviceDomain } = input
  return {
    messageId: name,
    acceptedAtMs: atMs,
    from: { address: `postmaster@${serviceDomain}`, name: 'Sendwright' },
    to: [{ address, name: null }],
    cc: [],
    subject: writeSubject(input),
    text: writeText(input),
    html: null,
    headers: { 'Auto-Submitted': 'auto-generated' },
    attachments: [],
    boundarySeed: name,
  }
}

function writeSubject({ purpose, accountName }: LinkMailInput): string {
  if (purpose === 'sign-in') return 'Your link to sign in'
  if (purpose === 'reset') return 'Choose a new password'
  return `You are invited to ${accountName ?? 'an account'}`
}

function writeText(input: LinkMailInput): string {
  const { purpose, url, endsAtMs, accountName } = input
  const opening = {
    'sign-in': 'A link to sign in to Sendwright was requested for this address:',
    reset: 'A new password for Sendwright was requested for this address. Choose it here:',
    invitation: `You are invited to the account "${accountName ?? ''}" on Sendwright. Accept it here:`,
    setup: `You are invited to the account "${accountName ?? ''}" on Sendwright. Accept it here:`,
  }[purpose]
  const until = `${new Date(endsAtMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  return [
    opening,
    '',
    url,
    '',
    `The link works once, until ${until}. If you did not request it, ignore this message.`,
    '',
  ].join('\n')
}
