/** table - columns for a terminal. */
import t from 'tap'
import { formatTable } from '../../../src/cli/console/table.ts'

t.test('table: columns are as wide as their widest cell, the last one is never padded', async (t) => {
  const rows = [
    ['CNAME', 'a', 'long value'],
    ['TXT', 'bcd', 'v'],
  ]
  t.equal(formatTable(['type', 'host', 'value'], rows), 'TYPE   HOST  VALUE\nCNAME  a     long value\nTXT    bcd   v')
})

t.test('table: without rows the head stands alone', async (t) => {
  t.equal(formatTable(['type', 'value'], []), 'TYPE  VALUE')
})
