/** Every regular expression is judged again: none on unbounded text is worse than linear. */
import t from 'tap'
import { judgePattern } from '../support/tidy/judge-pattern.ts'
import { boundOf, keyOf, productPatterns } from '../support/tidy/product-patterns.ts'

const unbounded = productPatterns().filter((one) => boundOf(one) === undefined)
const distinct = [...new Map(unbounded.map((one) => [keyOf(one), one])).values()]

t.test('patterns: those without a bound of their text are judged as linear', async (t) => {
  t.ok(distinct.length > 300)
  for (const one of distinct) {
    const { verdict } = await judgePattern(one)
    if (verdict !== 'safe' && verdict !== 'unknown') t.fail(`${one.path}: ${keyOf(one)} is ${verdict}`)
  }
})
