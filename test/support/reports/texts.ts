/** texts - aggregate reports as texts and mails, from a seed, so that a sample is the same in every run. */
import { gzipSync } from 'node:zlib'
import { zipSync } from 'fflate'
import type { DmarcRecord, TlsRecord } from '../../../src/mail/aggregate/report.ts'
import type { Layout, Packing, TLS_LAYOUTS } from './layouts.ts'

/** The domain that all genuine samples are about, and the day. */
export const SAMPLE_DOMAIN = 'shop.example'
export const DAY_SECONDS = 86_400

/** A report in a mail. */
export interface ReportSample {
  readonly name: string
  readonly contentType: string
  readonly fileName: string
  readonly file: Buffer
  /** Content type of the mail around it. */
  readonly mailType: string
  readonly reporter: string
  readonly reportId: string
  /** Its records, or why it cannot be read. */
  readonly content:
    | { readonly dmarc: readonly DmarcRecord[] }
    | { readonly tls: readonly TlsRecord[] }
    | { readonly issue: string }
}

/** Numbers of a seed (mulberry32), from 0 up to 1. */
export function makeRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Of {
  readonly seed: number
  readonly begin: number
}

/** A genuine DMARC report in a layout. */
export function dmarcSample(layout: Layout, { seed, begin }: Of): ReportSample {
  const random = makeRandom(seed)
  const records = Array.from({ length: 1 + Math.floor(random() * 12) }, () => someRecord(random))
  const reportId = `${layout.reporter}-${seed}`
  const text = dmarcText({ ...layout, reportId, begin }, records)
  return {
    name: `${layout.name} ${seed}`,
    contentType: layout.contentType,
    fileName: `${layout.reporter}!${SAMPLE_DOMAIN}!${begin}!${begin + DAY_SECONDS - 1}.xml`,
    file: pack(encode(text, layout.encoding ?? 'utf-8'), layout.packing),
    mailType: 'multipart/mixed',
    reporter: layout.reporter,
    reportId,
    content: { dmarc: records },
  }
}

const RESULTS = ['pass', 'fail', 'none', 'temperror', 'softfail', 'neutral'] as const

export function someRecord(random: () => number): DmarcRecord {
  const one = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value
  const octet = () => Math.floor(random() * 256)
  const [dkim, spf] = [random() < 0.7, random() < 0.5]
  const isSigned = dkim || random() < 0.5
  return {
    source: random() < 0.8 ? `198.51.${octet()}.${octet()}` : `2001:db8::${(1 + octet()).toString(16)}`,
    messages: 1 + Math.floor(random() * 1000),
    disposition: dkim || spf ? 'none' : one(['none', 'quarantine', 'reject']),
    dkim,
    spf,
    override: random() < 0.1 ? one(['forwarded', 'mailing_list', 'local_policy', 'trusted_forwarder']) : '',
    headerFrom: random() < 0.8 ? SAMPLE_DOMAIN : `news.${SAMPLE_DOMAIN}`,
    dkimResult: isSigned ? (dkim ? 'pass' : 'fail') : '',
    dkimDomain: isSigned ? SAMPLE_DOMAIN : '',
    dkimSelector: isSigned ? one(['s1', 'sw20261101a1b2', 'selector2']) : '',
    spfResult: spf ? 'pass' : one(RESULTS.slice(1)),
    spfDomain: one([`sw-bounce.${SAMPLE_DOMAIN}`, 'forwarder.example']),
  }
}

type DmarcText = Pick<
  Layout,
  'organization' | 'root' | 'prefix' | 'declaration' | 'metadata' | 'policy' | 'identifiers' | 'upper' | 'indent'
> & {
  readonly reportId: string
  readonly begin: number
}

export function dmarcText(of: DmarcText, records: readonly DmarcRecord[]): string {
  const body = [
    `<report_metadata><org_name>${of.organization}</org_name><email>noreply@reporter.example</email>${of.metadata ?? ''}`,
    `<report_id>${of.reportId}</report_id><date_range><begin>${of.begin}</begin><end>${of.begin + DAY_SECONDS - 1}</end></date_range></report_metadata>`,
    `<policy_published><domain>${SAMPLE_DOMAIN}</domain><adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct>${of.policy ?? ''}</policy_published>`,
    ...records.map((record) => recordText(record, of.identifiers ?? '')),
  ].join('')
  const spaced = of.indent === true ? body.replaceAll('><', '>\n  <') : body
  const named = of.prefix === undefined ? spaced : spaced.replace(/<(\/?)(?=\w)/g, `<$1${of.prefix}`)
  const root = of.root ?? 'feedback'
  const text = `<${root}>${named}</${root.split(' ')[0]}>`
  return `${of.declaration ?? ''}${of.upper === true ? text.replace(/<\/?\w+>/g, (tag) => tag.toUpperCase()) : text}`
}

function recordText(record: DmarcRecord, identifiers: string): string {
  const reason =
    record.override === ''
      ? ''
      : `<reason><type>${record.override}</type><comment>arc=pass &amp; more</comment></reason>`
  const dkim =
    record.dkimResult === ''
      ? ''
      : `<dkim><domain>other.example</domain><result>fail</result><selector>x</selector></dkim><dkim><domain>${record.dkimDomain}</domain><result>${record.dkimResult}</result><selector>${record.dkimSelector}</selector></dkim>`
  return [
    `<record><row><source_ip>${record.source}</source_ip><count>${record.messages}</count>`,
    `<policy_evaluated><disposition>${record.disposition}</disposition><dkim>${record.dkim ? 'pass' : 'fail'}</dkim>`,
    `<spf>${record.spf ? 'pass' : 'fail'}</spf>${reason}</policy_evaluated></row>`,
    `<identifiers>${identifiers}<header_from>${record.headerFrom}</header_from></identifiers>`,
    `<auth_results>${dkim}<spf><domain>${record.spfDomain}</domain><scope>mfrom</scope><result>${record.spfResult}</result></spf></auth_results></record>`,
  ].join('')
}

/** A genuine TLS report in a layout. */
export function tlsSample(layout: (typeof TLS_LAYOUTS)[number], { seed, begin }: Of): ReportSample {
  const random = makeRandom(seed)
  const reportId = `${begin}.${layout.reporter}.${seed}`
  const success = {
    domain: SAMPLE_DOMAIN,
    policyType: 'sts',
    result: '',
    receivingMx: '',
    sendingIp: '',
    reason: '',
    sessions: Math.floor(random() * 5000),
  }
  const failures = Array.from({ length: Math.floor(random() * 5) }, (_, at) => ({
    ...success,
    result: ['starttls-not-supported', 'certificate-expired', 'sts-webpki-invalid', 'validation-failure'][
      at % 4
    ] as string,
    receivingMx: `mx${at}.${SAMPLE_DOMAIN}`,
    sendingIp: at % 2 === 0 ? `203.0.113.${at}` : `2001:db8::${at}`,
    reason: at === 1 ? 'X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED' : '',
    sessions: 1 + Math.floor(random() * 50),
  }))
  const unexplained = Math.floor(random() * 3)
  const rest = { ...success, result: 'unspecified', sessions: unexplained }
  const json = {
    'organization-name': layout.name,
    'date-range': { 'start-datetime': isoOf(begin), 'end-datetime': isoOf(begin + DAY_SECONDS - 1) },
    'contact-info': 'smtp-tls-reporting@reporter.example',
    'report-id': reportId,
    policies: [
      {
        policy: {
          'policy-type': 'sts',
          'policy-string': ['version: STSv1', 'mode: enforce'],
          'policy-domain': SAMPLE_DOMAIN,
          'mx-host': [`*.${SAMPLE_DOMAIN}`],
        },
        summary: {
          'total-successful-session-count': success.sessions,
          'total-failure-session-count': failures.reduce((sum, { sessions }) => sum + sessions, unexplained),
        },
        ...(failures.length > 0 && {
          'failure-details': failures.map((one) => ({
            'result-type': one.result,
            'sending-mta-ip': one.sendingIp,
            'receiving-mx-hostname': one.receivingMx,
            'failed-session-count': one.sessions,
            ...(one.reason !== '' && { 'failure-reason-code': one.reason }),
          })),
        }),
      },
    ],
  }
  return {
    name: `${layout.name} ${seed}`,
    contentType: layout.contentType,
    fileName: `${layout.reporter}!${SAMPLE_DOMAIN}!${begin}!${begin + DAY_SECONDS - 1}!001.json.gz`,
    file: pack(Buffer.from(JSON.stringify(json)), layout.packing),
    mailType: 'multipart/report; report-type="tlsrpt"',
    reporter: layout.reporter,
    reportId,
    content: { tls: [success, ...failures, ...(unexplained > 0 ? [rest] : [])] },
  }
}

export function isoOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '')
}

function encode(text: string, encoding: NonNullable<Layout['encoding']>): Buffer {
  if (encoding === 'utf-16le') return Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])
  if (encoding === 'utf-8') return Buffer.from(text)
  // Of Cyrillic the samples have capital and small letters from U+0410 on.
  return Buffer.from(
    [...text].map((char) =>
      (char.codePointAt(0) as number) < 128 ? char.charCodeAt(0) : char.charCodeAt(0) - 0x410 + 0xc0,
    ),
  )
}

export function pack(file: Buffer, packing: Packing): Buffer {
  if (packing === 'gzip') return gzipSync(file)
  return packing === 'zip' ? Buffer.from(zipSync({ 'report.xml': file })) : file
}

/** The mail of a sample, without any signature. */
export function sampleMail(
  sample: ReportSample,
  of: { readonly from: string; readonly to: string },
): { fields: string[]; body: string } {
  const boundary = '----=_report'
  return {
    fields: [
      `From: DMARC reports <${of.from}>`,
      `To: ${of.to}`,
      `Subject: Report Domain: ${SAMPLE_DOMAIN} Submitter: ${sample.reporter} Report-ID: <${sample.reportId}>`,
      'MIME-Version: 1.0',
      `Content-Type: ${sample.mailType}; boundary="${boundary}"`,
    ],
    body: [
      `--${boundary}`,
      'Content-Type: text/plain',
      '',
      'This is an aggregate report.',
      `--${boundary}`,
      `Content-Type: ${sample.contentType}; name="${sample.fileName}"`,
      'Content-Transfer-Encoding: base64',
      `Content-Disposition: attachment; filename="${sample.fileName}"`,
      '',
      ...(sample.file.toString('base64').match(/.{1,76}/g) ?? []),
      `--${boundary}--`,
      '',
    ].join('\r\n'),
  }
}
