/** nesting - texts that are all lists and objects are detected, whatever their strings contain. */
import t from 'tap'
import { isOvernested } from '../../../src/http/shape/nesting.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'

const LONG = 'x'.repeat(70_000)
const deep = (times: number) => '['.repeat(times)
/** Text, whether it is too much. */
const CASES: readonly [string, string, boolean][] = [
  ['short', deep(60_000), false],
  ['as deep as may be', `["${LONG}",${deep(999)}`, false],
  ['one deeper', `["${LONG}",${deep(1_000)}`, true],
  ['deep in objects', `["${LONG}",${'{"a":'.repeat(1_000)}`, true],
  ['closed again', `["${LONG}",${'[{}],'.repeat(40_000)}`, false],
  ['as many as may be', `["${LONG}"${',[]'.repeat(99_999)}`, false],
  ['one more', `["${LONG}"${',[]'.repeat(100_000)}`, true],
  ['in a string', `["${LONG}${deep(5_000)}"]`, false],
  ['behind an escaped quote', `["${LONG}\\"${deep(5_000)}"]`, false],
  ['behind an escaped backslash', `["${LONG}\\\\",${deep(1_000)}`, true],
  ['behind three of them and a quote', `["${LONG}\\\\\\"${deep(5_000)}"]`, false],
  ['a string without end', `["${LONG}${deep(5_000)}`, false],
]

t.test('nesting: 1,000 deep and 100,000 in all pass, one more does not [request.json]', async (t) => {
  for (const [name, text, expected] of CASES) t.equal(isOvernested(text), expected, name)
})

t.test('nesting: a string of escapes is read once [request.json]', async (t) => {
  const text = `["${'\\'.repeat(5_000_000)}${'\\"'.repeat(2_500_000)}"]`
  t.ok((await cpuMsOf(() => t.notOk(isOvernested(text)))) < 5_000)
})
