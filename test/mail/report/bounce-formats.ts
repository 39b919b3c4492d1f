/**
 * bounce-formats - bounces of many mail systems, as their documentation and their sources write them, and mail that
 * only resembles them.
 *
 * The patterns were written with `test/fixtures/bounces.txt`; `bounces-held.txt` was kept back until they were
 * finished. Add a new format to the second file, measure it there, and move it to the first when a pattern is written
 * for it. Each mail begins with `=== name | kind hardness code`: `bounce hard 550`, `delay`, `other`; `-` if there is
 * no code.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Dsn, readDsn } from '../../../src/mail/report/dsn.ts'
import { parseMail } from '../../../src/reception/returned/parse.ts'
import { ROOT } from '../../support/machine/root.ts'

interface Format {
  readonly name: string
  readonly expected: string
  readonly mail: string
}

const FORMATS_MIN = 60
/** The share of bounces that end a delivery. */
const KNOWN_MIN = 0.97

function readFormats(file: string): Format[] {
  const text = readFileSync(join(ROOT, 'test/fixtures', file), 'utf8')
  return text
    .split(/^=== /m)
    .slice(1)
    .map((part): Format => {
      const end = part.indexOf('\n')
      const [name = '', expected = ''] = part.slice(0, end).split(' | ')
      return { name, expected, mail: part.slice(end + 1) }
    })
}

/** `bounce hard 550`, `delay`, `other`. */
function formatDsn(dsn: Dsn): string {
  if (dsn.kind !== 'bounce') return dsn.kind
  return `bounce ${dsn.hard ? 'hard' : 'soft'} ${dsn.code ?? '-'}`
}

const read = async ({ mail }: Format) => readDsn(parseMail(Buffer.from(mail)), 'ann@example.net')
const known = readFormats('bounces.txt')
const held = readFormats('bounces-held.txt')

for (const format of known)
  t.test(`dsn: ${format.name} [bounce.dsn] [bounce.text]`, async (t) => {
    const dsn = await read(format)
    t.equal(formatDsn(dsn), format.expected, JSON.stringify(dsn))
    if (dsn.kind === 'bounce') t.notMatch(dsn.response ?? '', /@/, 'no address is kept')
  })

t.test('dsn: formats that no pattern was written for [bounce.dsn] [bounce.text]', async (t) => {
  t.ok(known.length + held.length >= FORMATS_MIN && held.length >= known.length / 3)
  const dsns = await Promise.all(held.map(async (format) => ({ ...format, dsn: await read(format) })))
  const bounces = dsns.filter(({ expected }) => expected.startsWith('bounce'))
  const missed = bounces.filter(({ dsn }) => dsn.kind !== 'bounce')
  t.ok(missed.length <= bounces.length * (1 - KNOWN_MIN), missed.map(({ name }) => name).join(' '))
  const wrong = dsns.filter(({ expected, dsn }) => !expected.startsWith('bounce hard') && /hard/.test(formatDsn(dsn)))
  t.same(wrong, [], 'nobody is suppressed without cause')
  const others = dsns.filter(({ expected, dsn }) => !expected.startsWith('bounce') && dsn.kind === 'bounce')
  t.same(others, [], 'what is no bounce is none')
  for (const { dsn } of dsns) if (dsn.kind === 'bounce') t.notMatch(dsn.response ?? '', /@/, 'no address is kept')
})
