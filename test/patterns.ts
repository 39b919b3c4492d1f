/**
 * patterns - every regular expression of the product takes a time that grows with its text, not with its square, or its
 * text is bounded
 *
 * `recheck` judges a pattern. That takes minutes for all of them, so its verdicts are kept in fixtures/patterns.jsonl.
 * A pattern that is not there is judged here, and `node build/test/patterns.js --write` keeps the verdict. The deep
 * tier judges all of them again. A pattern that is not safe needs a row in `product-patterns`: how long its text can
 * be, and why. Here it is run with the worst text of that length that recheck knows.
 */
import t from 'tap'
import { type Judged, judgePattern, readVerdicts, worstTexts, writeVerdicts } from './support/tidy/judge-pattern.ts'
import { BOUNDED, boundOf, keyOf, MADE, productPatterns } from './support/tidy/product-patterns.ts'
import { madePatternsOf, patternsOf, productSyntax, syntaxOf } from './support/tidy/syntax.ts'

/** What an attack may hold the loop for. */
const CPU_MS_MAX = 100
const TRIES_MAX = 5

const patterns = productPatterns()
const kept = new Map(readVerdicts().map((one) => [keyOf(one), one]))
for (const one of patterns) if (!kept.has(keyOf(one))) kept.set(keyOf(one), await judgePattern(one))

if (process.argv.includes('--write')) {
  const used = new Set(patterns.map(keyOf))
  const rows = [...kept].filter(([key]) => used.has(key)).sort(([one], [other]) => (one < other ? -1 : 1))
  writeVerdicts(rows.map(([, row]) => row))
}

t.test('patterns: every one is found, in literals, schemas and calls', async (t) => {
  t.ok(new Set(patterns.map(keyOf)).size > 500)
  const text = "const a = /x+/gi\nconst b = { pattern: '^y$' }\nconst c = new RegExp(a, 'u')\nRegExp('w')\n"
  const planted = syntaxOf({ path: 'schemas/planted.ts', text })
  t.same(patternsOf(planted).map(keyOf), ['/x+/gi', '/^y$/u'])
  t.equal(madePatternsOf(planted).length, 2)
})

t.test('patterns: each that is made at run time is listed', async (t) => {
  const made = new Set(
    productSyntax()
      .flatMap(madePatternsOf)
      .map(({ path }) => path),
  )
  t.same([...made].sort(), Object.keys(MADE).sort())
})

t.test('patterns: each is linear, or has a bound of its text', async (t) => {
  const unsafe = patterns.filter((one) => kept.get(keyOf(one))?.verdict !== 'safe')
  for (const one of unsafe) {
    const bound = boundOf(one)
    const { verdict } = kept.get(keyOf(one)) as Judged
    if (bound === undefined)
      t.fail(`${one.path}: ${keyOf(one)} is ${verdict}: rewrite it, or bound its text and add a row`)
  }
  const used = new Set(unsafe.map(boundOf))
  t.same(
    Object.entries(BOUNDED).flatMap(([key, bound]) => (used.has(bound) ? [] : [key])),
    [],
    'no row is left over',
  )
  t.match(await judgePattern({ source: '^bytes=\\s*(\\d*)\\s*-\\s*(\\d*)\\s*-$', flags: '' }), {
    verdict: /polynomial/,
  })
})

t.test('patterns: the worst text within the bound is matched in time', async (t) => {
  const slow: string[] = []
  for (const one of patterns) {
    const judged = kept.get(keyOf(one)) as Judged
    const bound = boundOf(one)
    if (judged.verdict === 'safe' || bound === undefined) continue
    for (const text of worstTexts(judged, bound.charsMax)) {
      const ms = leastCpuMs(one, text)
      if (ms > CPU_MS_MAX) slow.push(`${one.path}: ${keyOf(one)} ${Math.round(ms)} ms`)
    }
  }
  t.same(slow, [])
})

/** Processor time of a match. A busy machine at most lengthens it, so the shortest of a few tries counts. */
function leastCpuMs({ source, flags }: { source: string; flags: string }, text: string): number {
  let least = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < TRIES_MAX && least > CPU_MS_MAX; tries += 1) {
    const before = process.cpuUsage()
    // With the flag `g` it is tried at every place, as a replacement does.
    text.replace(new RegExp(source, flags.replace('y', 'g')), '')
    least = Math.min(least, process.cpuUsage(before).user / 1000)
  }
  return least
}
