/** csv - rows of exports, read back by a parser that is not ours. */

import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import t from 'tap'
import { type Cell, formatCsvRow } from '../../../src/views/format/csv.ts'

/** The cells of rows as csv-parse reads them. */
function readBack(text: string): string[][] {
  return parse(text, { record_delimiter: '\r\n', relax_column_count: false }) as string[][]
}

t.test('csv: cells of RFC 4180, and no formula [export.cell]', async (t) => {
  const cases: readonly (readonly [cell: Cell, written: string])[] = [
    ['plain', 'plain'],
    ['', ''],
    [null, ''],
    [0, '0'],
    [-5, '-5'],
    [true, 'true'],
    [false, 'false'],
    ['a,b', '"a,b"'],
    ['say "no"', '"say ""no"""'],
    ['two\r\nlines', '"two\r\nlines"'],
    ['one\nline', '"one\nline"'],
    [' spaced ', '" spaced "'],
    ['=1+1', "'=1+1"],
    ['+49 30', "'+49 30"],
    ['-5', "'-5"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', '"\'\r=1"'],
    ['=HYPERLINK("http://a","b")', '"\'=HYPERLINK(""http://a"",""b"")"'],
    ['a=1', 'a=1'],
    ["'", "'"],
    ['Grüße 😀', 'Grüße 😀'],
  ]
  for (const [cell, written] of cases) t.equal(formatCsvRow([cell]), `${written}\r\n`, JSON.stringify(cell))
  t.equal(formatCsvRow(['a', 1, null, 'b']), 'a,1,,b\r\n')
})

t.test('csv: whatever the cells hold, another parser reads the same rows, none a formula [export.cell]', async (t) => {
  const hostile = fc.constantFrom(
    '=',
    '+',
    '-',
    '@',
    '\t',
    '\r',
    '\n',
    '"',
    ',',
    "'",
    ';',
    ' ',
    '\u0000',
    '\ufeff',
    'é',
  )
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.array(hostile).map((parts) => parts.join('')),
  )
  const cell: fc.Arbitrary<Cell> = fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null))
  const table = fc
    .integer({ min: 1, max: 6 })
    .chain((width) => fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 8 }))
  fc.assert(
    fc.property(table, (rows) => {
      // A first line, as every export has one: csv-parse takes a lone empty cell for an empty line.
      const header = rows[0]?.map((_, place) => `column${place}`) ?? []
      const [, ...read] = readBack([header, ...rows].map(formatCsvRow).join(''))
      if (read.length !== rows.length) throw new Error(`${rows.length} rows became ${read.length}`)
      for (const [place, row] of rows.entries())
        for (const [index, cell] of row.entries()) {
          const shown = read[place]?.[index] ?? ''
          if (typeof cell === 'string') {
            if (/^[=+\-@\t\r]/.test(shown)) throw new Error(`a formula: ${JSON.stringify(shown)}`)
            const isGuarded = /^[=+\-@\t\r]/.test(cell)
            if (shown !== (isGuarded ? `'${cell}` : cell)) throw new Error(`${JSON.stringify(cell)} became ${shown}`)
          } else if (shown !== String(cell ?? '')) throw new Error(`${cell} became ${shown}`)
        }
    }),
    { numRuns: 400 },
  )
  t.pass('every table')
})
