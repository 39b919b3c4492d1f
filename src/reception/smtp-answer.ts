/** smtp-answer - a reply to an SMTP client: its code, and its text with the enhanced code in front */

/** A reply to a peer; 250 means accepted. The text begins with the enhanced code (RFC 3463). */
export interface SmtpAnswer {
  readonly code: number
  readonly text: string
}
