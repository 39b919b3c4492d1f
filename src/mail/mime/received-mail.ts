/**
 * received-mail - a parsed received mail, for the API, the `inbound` event and the search.
 *
 * Bytes in, result out. No clock, no randomness, nothing is fetched. Callers run it in a thread with 20 seconds and a
 * bound of memory, and call `failMail` if these are exceeded. Guarantees: time and memory are linear in the bytes, for
 * any bytes; a mail is never lost, because an exceeded limit is named by one issue, and if it is a hard one the top
 * fields read so far are kept.
 *
 * Spec inbound.parse
 */

import type { HardIssue, ParseIssue, SoftIssue } from '../../../schemas/inbound.ts'
import { isDecodedTooLarge, type MailBody, readMailBody } from './body.ts'
import { readHeaderBlock } from './header-block.ts'
import { type MailHeader, readMailHeader } from './mail-header.ts'
import { namedIssue } from './parse-issue.ts'
import { walkMail } from './walk.ts'

/** A parsed mail. */
export interface ReceivedMail extends MailHeader, MailBody {
  readonly sizeBytes: number
  readonly parseIssue: ParseIssue | null
}

/** The part that is stored with the mail's content. The rest is in the rows of its message. */
export type ParsedContent = Omit<ReceivedMail, 'from' | 'named' | 'isNamedWhole' | 'sizeBytes' | 'parseIssue'>

const NO_BODY: MailBody = {
  text: null,
  html: null,
  hasText: false,
  hasHtml: false,
  contentOmitted: null,
  attachments: [],
}

/**
 * Parses a mail as it was received. `onHeader` gets the result for the header alone, before the body is parsed. The
 * thread posts it, so that a mail whose body takes too long keeps its fields.
 */
export function parseReceivedMail(raw: Buffer, onHeader: (mail: ReceivedMail) => void = () => undefined): ReceivedMail {
  const soft = new Set<SoftIssue>()
  const top = readHeaderBlock(raw, 0)
  const header = readMailHeader(top, soft)
  const make = (hard: HardIssue | null, body: MailBody): ReceivedMail => ({
    ...header,
    ...body,
    sizeBytes: raw.length,
    parseIssue: namedIssue(hard, soft),
  })
  if (top.issue !== null) return make(top.issue, NO_BODY)
  if (top.fields.length === 0) return make('no_headers', NO_BODY)
  onHeader(make(null, NO_BODY))
  const tree = walkMail(raw, top, soft)
  if (tree.issue !== null) return make(tree.issue, NO_BODY)
  if (isDecodedTooLarge(raw, tree.nodes)) return make('decoded_too_large', NO_BODY)
  const body = readMailBody(raw, tree.nodes, soft)
  return make(null, body)
}

/** The result if parsing was ended, with the fields passed to `onHeader`, or null if it had not been called. */
export function failMail(
  told: ReceivedMail | null,
  { issue, sizeBytes }: { issue: 'parse_timeout' | 'parser_error'; sizeBytes: number },
): ReceivedMail {
  const header = told ?? readMailHeader({ fields: [], bodyStart: 0, isMalformed: false, issue: null }, new Set())
  return { ...header, ...NO_BODY, isNamedWhole: told?.isNamedWhole ?? false, sizeBytes, parseIssue: issue }
}
