/** report-file - 200 samples of aggregate reports, and files that must not be unpacked or parsed to their end. */
import { gunzipSync, gzipSync } from 'node:zlib'
import { zipSync } from 'fflate'
import t from 'tap'
import { type DmarcRecord, ReportFault, type TlsRecord } from '../../../src/mail/aggregate/report.ts'
import { readReportFile, readReportMail } from '../../../src/mail/aggregate/report-file.ts'
import { reportSamples } from '../../support/reports/samples.ts'
import { type ReportSample, SAMPLE_DOMAIN, sampleMail } from '../../support/reports/texts.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 7)
const BOUNDS = { packedBytesMax: 1_000_000, bytesMax: 2_000_000, rowsMax: 1_000 }
const samples = reportSamples(NOW_MS)

type Content = { dmarc: DmarcRecord[]; tls: TlsRecord[] } | { issue: string }

async function contentOf(
  reading: (takers: Parameters<typeof readReportFile>[2]) => Promise<unknown>,
): Promise<Content & { head?: unknown }> {
  const [dmarc, tls]: [DmarcRecord[], TlsRecord[]] = [[], []]
  try {
    const head = await reading({ dmarc: (one) => dmarc.push(one), tls: (one) => tls.push(one) })
    return { dmarc, tls, head }
  } catch (error) {
    if (!(error instanceof ReportFault)) throw error
    return { issue: error.issue }
  }
}

function mailOf(sample: ReportSample): Buffer {
  const { fields, body } = sampleMail(sample, { from: `dmarc@${sample.reporter}`, to: 'd@rp.service.example' })
  return Buffer.from(`${fields.join('\r\n')}\r\n\r\n${body}`)
}

t.test('report-file: each of 200 samples has exactly its records, or its fault [reports.formats]', async (t) => {
  t.ok(samples.length >= 200, `${samples.length} samples`)
  t.equal(new Set(samples.map(({ name }) => name)).size, samples.length)
  for (const sample of samples) {
    const found = await contentOf((takers) => readReportMail(mailOf(sample), BOUNDS, takers))
    if ('issue' in sample.content) t.same(found, sample.content, sample.name)
    else {
      t.match(found, { head: { reportId: sample.reportId } }, sample.name)
      t.same(found, { dmarc: [], tls: [], ...sample.content, head: (found as { head: unknown }).head }, sample.name)
    }
  }
})

t.test('report-file: the head of a report', async (t) => {
  const [first] = samples as [ReportSample]
  const found = await contentOf((takers) => readReportFile(first.file, BOUNDS, takers))
  const beginMs = Date.UTC(2026, 10, 19)
  t.same(found.head, {
    kind: 'dmarc',
    organization: 'google.com',
    reportId: 'google.com-0',
    beginMs,
    endMs: beginMs + 86_399_000,
    domain: SAMPLE_DOMAIN,
    policy: { p: 'none', sp: 'none', np: '', adkim: 'r', aspf: 'r', pct: '100' },
  })
})

t.test('report-file: bombs end at their bound [reports.bounds]', async (t) => {
  const blanks = Buffer.concat([Buffer.from('<?xml version="1.0"?><feedback>'), Buffer.alloc(3_000_000, ' ')])
  const names = Buffer.from(`<feedback>${Array.from({ length: 150_000 }, (_, at) => `<e${at}/>`).join('')}`)
  const quote = Buffer.from(`<feedback a="${'x'.repeat(1_900_000)}`)
  const rows = Buffer.from(
    `<feedback>${'<record><row><source_ip>192.0.2.1</source_ip><count>1</count></row></record>'.repeat(1_001)}</feedback>`,
  )
  const nested = Buffer.from(`{"policies":${'['.repeat(900_000)}`)
  const cases: readonly (readonly [string, Buffer, string])[] = [
    ['gzip', gzipSync(blanks), 'too_large'],
    ['zip', Buffer.from(zipSync({ a: blanks })), 'too_large'],
    ['zip with a size that is a lie', liedZip(blanks), 'malformed'],
    ['plain', blanks, 'too_large'],
    ['rows', rows, 'too_large'],
    ['names of elements', names, 'malformed'],
    ['an attribute', quote, 'malformed'],
    ['JSON that is nested', nested, 'malformed'],
    ['JSON', Buffer.from(`{"a":"${'x'.repeat(3_000_000)}"}`), 'too_large'],
  ]
  for (const [name, file, issue] of cases)
    t.same(await contentOf((takers) => readReportFile(file, BOUNDS, takers)), { issue }, name)
  const huge = { ...(samples[0] as ReportSample), file: Buffer.alloc(1_000_001, '<feedback>') }
  t.same(await contentOf((takers) => readReportMail(mailOf(huge), BOUNDS, takers)), { issue: 'too_large' }, 'packed')
})

t.test('report-file: a report alone in a mail, and mails without one [reports.formats]', async (t) => {
  const sample = samples.find(({ name }) => name.startsWith('Google')) as ReportSample
  const alone = `From: a@google.com\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n${sample.file.toString('base64')}`
  const found = await contentOf((takers) => readReportMail(Buffer.from(alone), BOUNDS, takers))
  t.same('dmarc' in found && found.dmarc, 'dmarc' in sample.content && sample.content.dmarc)
  for (const text of ['', 'Subject: Hi\r\n\r\nHello', 'Content-Type: text/html\r\n\r\n<html><feedback>', '\0\0\0'])
    t.same(await contentOf((takers) => readReportMail(Buffer.from(text), BOUNDS, takers)), { issue: 'malformed' })
})

t.test('report-file: the text of a mail does not hide its file [reports.formats]', async (t) => {
  const sample = samples.find(({ name }) => name.startsWith('Google')) as ReportSample
  const texts = [
    ['text/html', '<!DOCTYPE html><html><body>A report</body></html>'],
    ['text/html', '<?xml version="1.0"?><html>A report</html>'],
    ['text/html', '<!-- A report -->'],
    ['text/plain', '{shop.example} A report'],
  ] as const
  for (const [type, text] of texts) {
    const mail = [
      'From: a@google.com\r\nContent-Type: multipart/mixed; boundary=b\r\n',
      `--b\r\nContent-Type: ${type}\r\n\r\n${text}`,
      `--b\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n${sample.file.toString('base64')}`,
      '--b--\r\n',
    ].join('\r\n')
    const found = await contentOf((takers) => readReportMail(Buffer.from(mail), BOUNDS, takers))
    t.same('dmarc' in found && found.dmarc, 'dmarc' in sample.content && sample.content.dmarc, text)
  }
})

t.test('report-file: UTF-8 that is declared as UTF-16 [reports.formats]', async (t) => {
  const [{ file }] = samples.filter(({ contentType }) => contentType === 'application/gzip') as [ReportSample]
  const text = gunzipSync(file)
    .toString()
    .replace(/^<\?xml[^>]*>\s*/, '')
  const read = (xml: string) => contentOf((takers) => readReportFile(Buffer.from(xml), BOUNDS, takers))
  t.same(await read(`<?xml version="1.0" encoding="utf-16"?>${text}`), await read(text))
  t.match(await read(text), { head: { kind: 'dmarc' } })
})

/** A zip file whose directory says that its entry has one byte. */
function liedZip(content: Buffer): Buffer {
  const zip = Buffer.from(zipSync({ a: content }))
  const at = zip.indexOf('PK\x01\x02')
  zip.writeUInt32LE(1, at + 24)
  return zip
}
