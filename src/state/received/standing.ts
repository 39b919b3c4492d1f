/**
 * standing - the data of a received message that is kept as long as its reference, next to its entry in the log.
 *
 * States: received (only its size and address are known) -> parsed. Packed: `[size, flags, attachments, issue letter,
 * six verdict letters, checked after ms, mailbox hash, stream's id as spelled, From number]`, 0 for absent values,
 * zeros at the end left off. Letters are places in the words of the contract (`schemas/inbound.ts`), in base 36.
 *
 * Key: `received-state:<server>:<segment>`, field = the message's short id
 *
 * Spec inbound.summary
 */

import { withoutSum, withSum } from '../../../cluster/sum.ts'
import {
  ARC_VERDICTS,
  DKIM_VERDICTS,
  DMARC_POLICIES,
  HARD_ISSUES,
  type ParseIssue,
  SOFT_ISSUES,
  SPF_VERDICTS,
} from '../../../schemas/inbound.ts'
import { type Authentication, UNCHECKED } from '../../mail/authenticate/authentication.ts'
import { trimZeros } from './trim.ts'

export interface ReceivedStanding {
  /** As received. */
  readonly sizeBytes: number
  /** False until its outcome; no event is sent before. */
  readonly isParsed: boolean
  readonly hasText: boolean
  readonly hasHtml: boolean
  readonly attachmentCount: number
  readonly parseIssue: ParseIssue | null
  readonly authentication: Authentication
  readonly checkedAtMs: number | null
  /** The text after the plus sign of its address. */
  readonly mailboxHash: string | null
  /** The spelling of the stream's id in that address, if not in lower case. */
  readonly spelledId: string | null
  /** Person number of the first mailbox of From; 0 for none. */
  readonly from: number
}

const ISSUES: readonly ParseIssue[] = [...HARD_ISSUES, ...SOFT_ISSUES]
const BASE = 36
const NO_POLICY = '-'
const TEXT = 1
const HTML = 2
const PARSED = 4

/** A message that was received a moment ago. */
export function freshStanding(of: Pick<ReceivedStanding, 'sizeBytes' | 'mailboxHash' | 'spelledId'>): ReceivedStanding {
  return {
    ...of,
    isParsed: false,
    hasText: false,
    hasHtml: false,
    attachmentCount: 0,
    parseIssue: null,
    authentication: UNCHECKED,
    checkedAtMs: null,
    from: 0,
  }
}

/** Packs the standing of a message received at `receivedAtMs`. */
export function packStanding(standing: ReceivedStanding, receivedAtMs: number): string {
  const { hasText, hasHtml, isParsed, parseIssue, authentication, checkedAtMs } = standing
  const packed = trimZeros<unknown>([
    standing.sizeBytes,
    (hasText ? TEXT : 0) + (hasHtml ? HTML : 0) + (isParsed ? PARSED : 0),
    standing.attachmentCount,
    parseIssue === null ? 0 : ISSUES.indexOf(parseIssue).toString(BASE),
    checkedAtMs === null ? 0 : packVerdicts(authentication),
    // Never 0, which means that nothing was checked.
    checkedAtMs === null ? 0 : Math.max(1, checkedAtMs - receivedAtMs),
    standing.mailboxHash ?? 0,
    standing.spelledId ?? 0,
    standing.from,
  ])
  return withSum(JSON.stringify(packed))
}

/** Unpacks a standing. */
export function unpackStanding(text: string, receivedAtMs: number): ReceivedStanding {
  const [size, flags = 0, attachments, issue, verdicts, checkedAfterMs, plus, spelled, from] = JSON.parse(
    withoutSum(text, 'standing'),
  ) as [number, number?, number?, (string | 0)?, (string | 0)?, number?, (string | 0)?, (string | 0)?, number?]
  return {
    sizeBytes: size,
    isParsed: (flags & PARSED) !== 0,
    hasText: (flags & TEXT) !== 0,
    hasHtml: (flags & HTML) !== 0,
    attachmentCount: attachments ?? 0,
    parseIssue: issue ? (ISSUES[Number.parseInt(issue, BASE)] ?? null) : null,
    authentication: verdicts ? unpackVerdicts(verdicts) : UNCHECKED,
    checkedAtMs: checkedAfterMs ? receivedAtMs + checkedAfterMs : null,
    mailboxHash: textOf(plus),
    spelledId: textOf(spelled),
    from: from ?? 0,
  }
}

function packVerdicts({ spf, spfHelo, dkim, dmarc, dmarcPolicy, arc }: Authentication): string {
  const policy = dmarcPolicy === null ? NO_POLICY : letterOf(DMARC_POLICIES, dmarcPolicy)
  return (
    letterOf(SPF_VERDICTS, spf) +
    letterOf(SPF_VERDICTS, spfHelo) +
    letterOf(DKIM_VERDICTS, dkim) +
    letterOf(DKIM_VERDICTS, dmarc) +
    policy +
    letterOf(ARC_VERDICTS, arc)
  )
}

function unpackVerdicts(letters: string): Authentication {
  const [spf, spfHelo, dkim, dmarc, policy, arc] = letters
  return {
    spf: wordOf(SPF_VERDICTS, spf),
    spfHelo: wordOf(SPF_VERDICTS, spfHelo),
    dkim: wordOf(DKIM_VERDICTS, dkim),
    dmarc: wordOf(DKIM_VERDICTS, dmarc),
    dmarcPolicy: policy === NO_POLICY ? null : wordOf(DMARC_POLICIES, policy),
    arc: wordOf(ARC_VERDICTS, arc),
  }
}

function letterOf<Word extends string>(words: readonly Word[], word: Word): string {
  return words.indexOf(word).toString(BASE)
}

function wordOf<Word extends string>(words: readonly Word[], letter: string | undefined): Word {
  return words[Number.parseInt(letter ?? '0', BASE)] as Word
}

/** A text of digits is a text too: only the number 0 means none. */
function textOf(value: string | 0 | undefined): string | null {
  return typeof value === 'string' ? value : null
}
