/** verdicts - the results of SPF, DKIM, DMARC and ARC for a received mail, and its parse issue, in words */
import type { AuthenticationShown, ParseIssue } from '../../../../../schemas/inbound.ts'
import { StatusChip } from '../../parts/chip.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Time } from '../../parts/time.tsx'

/** A verdict as a chip. */
export function DmarcChip({ verdict }: { verdict: string }) {
  return <StatusChip status={verdict} />
}

const SPF: Readonly<Record<string, string>> = {
  pass: 'The sending server may send for the envelope’s domain.',
  fail: 'The sending server may not send for the envelope’s domain.',
  softfail: 'The sending server probably may not.',
  neutral: 'The domain has no policy for this server.',
  none: 'The domain has no SPF record.',
}
const DKIM: Readonly<Record<string, string>> = {
  pass: 'A signature is valid: the message is unchanged since it was signed.',
  fail: 'The message is signed, but no signature is valid.',
  none: 'The message is not signed.',
}
const DMARC: Readonly<Record<string, string>> = {
  pass: 'The domain of From is authenticated.',
  fail: 'The domain of From is not authenticated: anyone could have sent this.',
  none: 'The domain of From has no DMARC policy.',
}

/** All verdicts. */
export function Verdicts({ of }: { of: AuthenticationShown }) {
  const row = (verdict: string, words: Readonly<Record<string, string>>) => (
    <>
      <StatusChip status={verdict} /> <span class="dim">{words[verdict] ?? ''}</span>
    </>
  )
  return (
    <DefinitionList
      of={[
        ['SPF', row(of.spf, SPF)],
        ['SPF of HELO', row(of.spfHelo, {})],
        ['DKIM', row(of.dkim, DKIM)],
        ['DMARC', row(of.dmarc, DMARC)],
        [
          'Its policy',
          of.dmarcPolicy === null
            ? null
            : `The domain asks to ${of.dmarcPolicy === 'none' ? 'do nothing' : of.dmarcPolicy} such mail.`,
        ],
        ['ARC', row(of.arc, {})],
        ['Checked', of.checkedAt === null ? 'not yet' : <Time at={of.checkedAt} as="long" key="at" />],
      ]}
    />
  )
}

const ISSUES: Readonly<Record<ParseIssue, string>> = {
  no_headers: 'It has no header.',
  header_block_too_large: 'Its header is too large.',
  too_many_headers: 'It has too many header fields.',
  too_many_parts: 'It has too many parts.',
  nesting_too_deep: 'Its parts are nested too deep.',
  missing_boundary: 'Its parts cannot be separated.',
  decoded_too_large: 'Decoded it is too large.',
  parse_timeout: 'It took too long to parse.',
  parser_error: 'It could not be parsed.',
  truncated_multipart: 'Its last part is incomplete.',
  too_many_attachments: 'Only the first 100 attachments are shown.',
  unknown_transfer_encoding: 'A part has an unknown encoding.',
  undecodable_container: 'A part could not be decoded.',
  filename_sanitised: 'A file’s name was changed.',
  control_chars_stripped: 'Control characters were removed.',
  multiple_from: 'It has more than one From.',
  duplicate_header: 'A field that may occur once occurs twice.',
  malformed_header_dropped: 'A malformed field was left out.',
  address_list_truncated: 'Only the first 1,000 addresses are shown.',
  header_value_truncated: 'A long field was cut.',
}

/** An issue in words. */
export function sentenceOfIssue(issue: ParseIssue): string {
  return ISSUES[issue]
}
