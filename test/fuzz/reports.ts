/**
 * Mails with DMARC and TLS reports whose bytes, texts and packing are changed at random: each is counted or has an
 * issue of the contract, without a throw, and its counted rows are within the bounds of a day.
 */
import { gunzipSync, gzipSync } from 'node:zlib'
import { unzipSync, zipSync } from 'fflate'
import t from 'tap'
import { REPORT_CLASS_BYTES_MAX, REPORT_CLASS_ROWS_MAX } from '../../schemas/limits.ts'
import { type CountedReport, readReport } from '../../src/reception/reports/read-report.ts'
import { reportSamples } from '../support/reports/samples.ts'
import { makeRandom, type ReportSample, SAMPLE_DOMAIN, sampleMail } from '../support/reports/texts.ts'

const SEED = Number(process.env.SEED ?? 7)
const REPORTS = Number(process.env.REPORTS ?? 1_500)
const ISSUES = ['malformed', 'entities', 'too_large', 'other_domain']
/** Processor time of one report: a usual one takes a few milliseconds. */
const CPU_MS_MAX = 10_000
/** Memory of all of them together. */
const HEAP_BYTES_MAX = 256 * 1024 * 1024
/** Text that means something in XML, JSON or a mail. */
const WORDS = [
  ...[
    '<',
    '>',
    '</record>',
    '<record>',
    '<count>',
    '&amp;',
    '&x;',
    '<!DOCTYPE a [<!ENTITY b "c">]>',
    '<![CDATA[',
    ']]>',
  ],
  ...[
    '<a '.repeat(40),
    '<b>'.repeat(40),
    '"',
    '{',
    '[',
    ',',
    ':',
    'null',
    '-1',
    '1e308',
    '99999999999999999999',
    '\\ud800',
  ],
  ...[
    '__proto__',
    '\0',
    '\r\n\r\n',
    '--',
    '\u00e9',
    'x'.repeat(3_000),
    '[['.repeat(2_000),
    '192.0.2.999',
    '::ffff:1.2.3.4',
  ],
]

const random = makeRandom(SEED)
const draw = (below: number) => Math.floor(random() * below)
const samples = reportSamples(Date.UTC(2026, 10, 20, 7))

/** Changes some bytes: sets, cuts, doubles and inserts. */
function mutate(bytes: Buffer): Buffer {
  let out = bytes
  for (let left = 1 + draw(5); left > 0; left -= 1) {
    const [at, length] = [draw(out.length + 1), draw(200)]
    const [before, after] = [out.subarray(0, at), out.subarray(at)]
    const word = draw(3) === 0 ? Buffer.of(draw(256)) : Buffer.from(WORDS[draw(WORDS.length)] as string)
    const changed = [
      Buffer.concat([before, word, after.subarray(word.length)]),
      Buffer.concat([before, word, after]),
      Buffer.concat([before, after.subarray(length)]),
      Buffer.concat([before, after.subarray(0, length), after]),
      before,
    ]
    out = changed[draw(left === 1 ? 5 : 4)] as Buffer
  }
  return out
}

/** Changes digits alone, so that most reports can still be read. */
function mistype(bytes: Buffer): Buffer {
  const out = Buffer.from(bytes)
  for (let left = 40; left > 0; left -= 1) {
    const at = draw(out.length)
    if (/[0-9]/.test(String.fromCharCode(out[at] ?? 0))) out[at] = 0x30 + draw(10)
  }
  return out
}

/** The text in a file; null if it is not packed as it says. */
function unpacked(file: Buffer): Buffer | null {
  try {
    if (file[0] === 0x1f) return gunzipSync(file, { maxOutputLength: 1_000_000 })
    if (file[0] === 0x50) return Buffer.from(Object.values(unzipSync(file))[0] ?? [])
    return file
  } catch {
    return null
  }
}

function packed(text: Buffer): Buffer {
  const way = draw(3)
  if (way === 0) return text
  return way === 1 ? gzipSync(text) : Buffer.from(zipSync({ 'report.xml': text }))
}

function mailOf(sample: ReportSample): Buffer {
  const { fields, body } = sampleMail(sample, { from: `dmarc@${sample.reporter}`, to: 'd@rp.service.example' })
  return Buffer.from(`${fields.join('\r\n')}\r\n\r\n${body}`)
}

/** A mail: its text changed before it is packed, its file after that, or the mail itself. */
function draft(): Buffer {
  const sample = samples[draw(samples.length)] as ReportSample
  const way = draw(6)
  if (way === 0) return mutate(mailOf(sample))
  if (way === 1) return mailOf({ ...sample, file: mutate(sample.file) })
  const text = unpacked(sample.file)
  return text === null
    ? mutate(mailOf(sample))
    : mailOf({ ...sample, file: packed((draw(2) === 0 ? mutate : mistype)(text.subarray(0, 1_000_000))) })
}

/** Why what was counted breaks a bound; null if it does not. */
function faultOf({ added, messages, rows }: CountedReport): string | null {
  const sum = added.rows.reduce((all, [count]) => all + count, 0)
  if (sum !== messages || !Number.isSafeInteger(sum)) return `${sum} of ${messages} messages`
  // Two classes and the rows of their rests.
  if (added.rows.length > 2 * REPORT_CLASS_ROWS_MAX + 20) return `${added.rows.length} rows of ${rows}`
  const bytes = Buffer.byteLength(JSON.stringify(added.rows))
  return bytes > 2 * REPORT_CLASS_BYTES_MAX + 32 * 1024 ? `${bytes} bytes` : null
}

t.test(
  'reports: whatever is changed, a report is counted within bounds or has an issue [reports.formats] [reports.bounds]',
  async (t) => {
    const ends = new Map<string, number>()
    const heapBefore = process.memoryUsage().heapUsed
    for (let n = 0; n < REPORTS; n += 1) {
      const raw = draft()
      const before = process.cpuUsage()
      const read = await readReport({ raw, domain: SAMPLE_DOMAIN, reporter: 'example.net' }).catch((fault: unknown) => {
        t.fail(`report ${n} of seed ${SEED}: ${fault}`)
        return { issue: 'fault' }
      })
      const { user, system } = process.cpuUsage(before)
      if ((user + system) / 1000 > CPU_MS_MAX) t.fail(`report ${n} of seed ${SEED} took ${user + system} us`)
      const end = 'issue' in read ? read.issue : 'counted'
      ends.set(end, (ends.get(end) ?? 0) + 1)
      const fault = 'issue' in read ? null : faultOf(read)
      if (fault !== null) t.fail(`report ${n} of seed ${SEED}: ${fault}`)
    }
    t.ok(process.memoryUsage().heapUsed - heapBefore < HEAP_BYTES_MAX)
    t.comment([...ends].map(([end, count]) => `${end} ${count}`).join(', '))
    t.same(
      [...ends.keys()].filter((end) => end !== 'counted' && !ISSUES.includes(end)),
      [],
    )
    for (const end of ['counted', 'malformed', 'entities']) t.ok((ends.get(end) ?? 0) > REPORTS / 100, end)
  },
)
