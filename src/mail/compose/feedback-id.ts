/**
 * feedback-id - the Feedback-ID field, by which Gmail groups complaints in its Postmaster Tools
 *
 * `<broadcast or tag>:<stream>:<account>:<sender>`; the last part names the installation, and Gmail wants it to be 5 to
 * 15 characters that never change. Ids are given by their last eight digits, because the first ones are a time that
 * many ids share.
 *
 * Spec send.feedback-id
 */

const NAME = 'feedback-id'
const ID_DIGITS = 8

export interface FeedbackIdInput {
  /** The broadcast of the message, which then replaces the tag; absent or null for none. */
  readonly broadcast?: { readonly broadcastId: string } | null
  /** Null if the message has no tag, and then the part is left out. */
  readonly tagHash: string | null
  readonly streamId: string
  readonly accountId: string
  /** The installation. */
  readonly senderId: string
}

/** The value of the field. */
export function formatFeedbackId({ broadcast, tagHash, streamId, accountId, senderId }: FeedbackIdInput): string {
  const parts = [streamId.slice(-ID_DIGITS), accountId.slice(-ID_DIGITS), senderId]
  const first = broadcast == null ? tagHash : broadcast.broadcastId.slice(-ID_DIGITS)
  return (first === null ? parts : [first, ...parts]).join(':')
}

/** Whether a client's own fields have one, which is then kept. */
export function hasFeedbackId(headers: Readonly<Record<string, string>>): boolean {
  for (const name in headers) if (name.toLowerCase() === NAME) return true
  return false
}
