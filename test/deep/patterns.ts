/** Every regular expression whose verdict is kept is judged again: none that counts as safe is not. */
import t from 'tap'
import { judgePattern, readVerdicts } from '../support/tidy/judge-pattern.ts'

const kept = readVerdicts()

t.test('patterns: those that are kept as safe are judged as no worse', async (t) => {
  t.ok(kept.length > 500)
  for (const one of kept.filter(({ verdict }) => verdict === 'safe')) {
    const { verdict } = await judgePattern(one)
    if (verdict !== 'safe' && verdict !== 'unknown') t.fail(`/${one.source}/${one.flags} is ${verdict}`)
  }
})
