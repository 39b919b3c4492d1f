/**
 * planted - mistakes planted on purpose. The simulation proves something only if it detects each of them.
 */
import { test } from 'tap'
import { BUGS } from '../../simulation/bugs/bugs.ts'
import { simulate } from '../../simulation/run.ts'

/** The rarest of them appears in one seed of eighty or so. */
const SEEDS = Array.from({ length: 200 }, (_, n) => n + 1)

test('planted: there are forty-five', async (t) => {
  t.equal(new Set(BUGS.map(({ name }) => name)).size, 45)
})

for (const bug of BUGS) {
  test(`planted: ${bug.name} is seen`, async (t) => {
    for (const seed of [bug.seed ?? 1, ...SEEDS]) {
      const { violations } = await simulate(seed, bug, bug.cluster === undefined && bug.orders === undefined ? 1 : 2)
      const seen = violations.find((violation) => bug.seenAs.test(violation))
      if (seen === undefined) continue
      t.pass(`seed ${seed}: ${seen}`)
      return
    }
    t.fail(`${SEEDS.length} seeds stayed green`)
  })
}
