/**
 * dmarc-xml - a DMARC aggregate report (RFC 7489 appendix C, RFC 9990), read piece by piece
 *
 * Guarantees: memory does not grow with the report; a DTD, an entity that XML does not define and any break of
 * well-formedness end it. Names of elements count without their prefix and in any case, because reporters differ.
 *
 * Spec reports.formats, reports.bounds
 */

import sax from 'sax'
import { normalAddress } from '../ip-address.ts'
import {
  codeOf,
  DISPOSITIONS,
  type Disposition,
  type DmarcHead,
  type DmarcRecord,
  lineOf,
  ReportFault,
  reportDomain,
} from './report.ts'

const DEPTH_MAX = 12
const TEXT_CHARS_MAX = 1024
/** Signatures of one record that are compared. */
const SIGNATURES_MAX = 20
/** Elements of a record, or of the rest, whose text is kept. The format has 30. */
const TEXTS_MAX = 100
/** A count above this is no count of mail, and sums of such counts stay exact. */
export const COUNT_MAX = 1_000_000_000
const REPORT_ID_CHARS_MAX = 255
const ORGANIZATION_CHARS_MAX = 100
const RECORD = 'feedback/record'
const SIGNATURE = `${RECORD}/auth_results/dkim`
const SPF = `${RECORD}/auth_results/spf`
/** Elements that may occur more than once in their parent; of all others the first counts. */
const GROUPS: ReadonlySet<string> = new Set([SIGNATURE, SPF])

type Texts = Map<string, string>

export interface DmarcReader {
  /** Reads the next piece. Throws ReportFault. */
  write(text: string): void
  /** Ends the report. Throws ReportFault if something is missing. */
  end(): DmarcHead
}

/** Reads a report. `take` is called with each of its records. */
export function makeDmarcReader(take: (record: DmarcRecord) => void): DmarcReader {
  // Without its count of positions (an option) the parser would not bound its buffers.
  const parser = sax.parser(true)
  const path: string[] = []
  const head: Texts = new Map()
  let record: Texts = new Map()
  let groups: Texts[] = []
  let text = ''
  let hasRoot = false
  parser.onerror = ({ message }) =>
    message.startsWith('Invalid character entity')
      ? fail('entities', 'it has an entity that XML does not define')
      : fail('malformed', 'it is no well-formed XML')
  parser.ondoctype = () => fail('entities', 'it has a DTD')
  parser.onopentag = ({ name }) => {
    if (path.length === 0 && hasRoot) fail('malformed', 'it has two roots')
    hasRoot = true
    const place = path.length === 0 ? '' : `${path.at(-1)}/`
    path.push(`${place}${name.slice(name.indexOf(':') + 1).toLowerCase()}`)
    if (path.length > DEPTH_MAX) fail('malformed', 'its elements are nested too deep')
    const opened = path.at(-1) as string
    if (opened === RECORD) [record, groups] = [new Map(), []]
    if (GROUPS.has(opened) && groups.length < SIGNATURES_MAX) groups.push(new Map([['', opened]]))
    text = ''
  }
  const add = (piece: string): void => {
    if (text.length < TEXT_CHARS_MAX) text += piece.slice(0, TEXT_CHARS_MAX)
  }
  parser.ontext = add
  parser.oncdata = add
  parser.onclosetag = () => {
    const closed = path.pop() as string
    const parent = path.at(-1) ?? ''
    if (GROUPS.has(parent)) set(groups.at(-1) as Texts, closed.slice(parent.length + 1), text)
    else set(closed.startsWith(RECORD) ? record : head, closed, text)
    if (closed === RECORD) take(recordOf(record, groups))
    text = ''
  }
  return {
    write: (piece) => void parser.write(piece),
    end() {
      parser.close()
      return headOf(head)
    },
  }
}

function fail(issue: 'malformed' | 'entities', message: string): never {
  throw new ReportFault(issue, message)
}

function set(texts: Texts, name: string, text: string): void {
  if (!texts.has(name) && texts.size < TEXTS_MAX) texts.set(name, text.trim())
}

function headOf(texts: Texts): DmarcHead {
  const metadata = (name: string) => texts.get(`feedback/report_metadata/${name}`)
  const published = (name: string) => texts.get(`feedback/policy_published/${name}`)
  const reportId = lineOf(metadata('report_id'), REPORT_ID_CHARS_MAX)
  const domain = reportDomain(published('domain'))
  if (reportId === '' || domain === '') fail('malformed', 'it has no id or no domain')
  const policy = {
    p: codeOf(published('p')),
    sp: codeOf(published('sp')),
    np: codeOf(published('np')),
    adkim: codeOf(published('adkim')),
    aspf: codeOf(published('aspf')),
    pct: codeOf(published('pct')),
  }
  const [beginMs, endMs] = [secondsOf(metadata('date_range/begin')), secondsOf(metadata('date_range/end'))]
  if (endMs < beginMs) fail('malformed', 'it ends before it begins')
  return {
    kind: 'dmarc',
    organization: lineOf(metadata('org_name'), ORGANIZATION_CHARS_MAX),
    reportId,
    beginMs,
    endMs,
    domain,
    policy,
  }
}

/** Seconds since 1970, up to the year 2200, in milliseconds. */
function secondsOf(text: string | undefined): number {
  if (text === undefined || !/^\d{9,10}$/.test(text)) fail('malformed', 'its period is missing or no number')
  return Number(text) * 1000
}

function recordOf(texts: Texts, groups: readonly Texts[]): DmarcRecord {
  const row = (name: string) => texts.get(`${RECORD}/row/${name}`)
  const evaluated = (name: string) => row(`policy_evaluated/${name}`)
  const source = normalAddress(row('source_ip') ?? '')
  if (source === null) fail('malformed', 'a record has no source address')
  const headerFrom = reportDomain(texts.get(`${RECORD}/identifiers/header_from`))
  const signature = bestOf(groups, SIGNATURE, headerFrom)
  const spf = bestOf(groups, SPF, headerFrom)
  return {
    source,
    messages: countOf(row('count')),
    disposition: dispositionOf(evaluated('disposition')),
    dkim: codeOf(evaluated('dkim')) === 'pass',
    spf: codeOf(evaluated('spf')) === 'pass',
    override: codeOf(evaluated('reason/type')),
    headerFrom,
    dkimResult: codeOf(signature?.get('result')),
    dkimDomain: reportDomain(signature?.get('domain')),
    dkimSelector: reportDomain(signature?.get('selector')),
    spfResult: codeOf(spf?.get('result')),
    spfDomain: reportDomain(spf?.get('domain')),
  }
}

function countOf(text: string | undefined): number {
  const count = text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(count <= COUNT_MAX)) fail('malformed', 'a record has no count')
  return count
}

/** RFC 9990 has `pass` for mail that no policy was applied to. */
function dispositionOf(text: string | undefined): Disposition {
  return DISPOSITIONS.find((one) => one === codeOf(text)) ?? 'none'
}

/** The result that explains the outcome: one that passed first, then one of the author's domain. */
function bestOf(groups: readonly Texts[], kind: string, headerFrom: string): Texts | undefined {
  const rank = (one: Texts) =>
    (codeOf(one.get('result')) === 'pass' ? 2 : 0) + (isRelated(reportDomain(one.get('domain')), headerFrom) ? 1 : 0)
  let best: Texts | undefined
  for (const one of groups) if (one.get('') === kind && (best === undefined || rank(one) > rank(best))) best = one
  return best
}

function isRelated(one: string, other: string): boolean {
  return one === other || one.endsWith(`.${other}`) || other.endsWith(`.${one}`)
}
