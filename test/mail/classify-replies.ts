/**
 * classify-replies - replies of the large receivers, from `test/fixtures/replies.tsv`: the suppression, and the class.
 *
 * To add a reply, add one line to that file. A row that should be hard and is not counts against a bound. A row that
 * is hard and should not be fails at once, because it would make a person unreachable without a visible reason.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { classifyReply } from '../../src/mail/classify.ts'
import type { Phase } from '../../src/mail/outcome.ts'
import { ROOT } from '../support/machine/root.ts'

interface Row {
  readonly verdict: string
  readonly phase: Phase
  readonly classification: string
  readonly source: string
  readonly response: string
}

const ROWS_MIN = 150
/** The share of rows about a dead recipient; "never hard" is no solution. */
const HARD_MIN = 0.95
/** The share of all rows. The operator's statistics are grouped by class. */
const CLASS_MIN = 0.95

const rows = readFileSync(join(ROOT, 'test/fixtures/replies.tsv'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line): Row => {
    const [verdict = '', phase = '', classification = '', source = '', response = ''] = line.split('\t')
    return { verdict, phase: phase as Phase, classification, source, response }
  })
const judged = rows.map((row) => ({ ...row, ours: classifyReply(row) }))

t.test('classify: the table is whole', async (t) => {
  t.ok(rows.length >= ROWS_MIN, `${rows.length} rows`)
  for (const { verdict, response } of rows) {
    t.match(verdict, /^(dead|other)$/, response)
    t.match(response, /^[45]\d\d /, response)
  }
  const documented = rows.filter(({ source }) => source !== 'own')
  t.ok(documented.length >= rows.length / 2, `${documented.length} rows from documentation`)
})

t.test('classify: a reply about anything else suppresses no address [message.hard]', async (t) => {
  const wrong = judged.filter(({ verdict, ours }) => verdict === 'other' && ours.hard)
  t.same(
    wrong.map(({ response }) => response),
    [],
  )
})

t.test('classify: dead recipients are suppressed [message.hard]', async (t) => {
  const dead = judged.filter(({ verdict }) => verdict === 'dead')
  const missed = dead.filter(({ ours }) => !ours.hard)
  t.ok(
    missed.length <= dead.length * (1 - HARD_MIN),
    `${missed.length} of ${dead.length} missed: ${missed.map(({ response }) => response).join('\n')}`,
  )
})

t.test('classify: the class of each [delivery.class]', async (t) => {
  const other = judged.filter(({ classification, ours }) => ours.classification !== classification)
  t.ok(
    other.length <= rows.length * (1 - CLASS_MIN),
    other
      .map(({ ours, classification, response }) => `${ours.classification}, not ${classification}: ${response}`)
      .join('\n'),
  )
})
