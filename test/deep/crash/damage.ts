/** Every file of an installation is damaged in each way: the start is refused, or reads and the log report it. */
import t from 'tap'
import { DAMAGES, failuresOfDamage, runDamage } from '../../chaos/damage.ts'
import { makeRandom } from '../../support/store/random-ops.ts'

t.test('damage: nothing is missing or changed in silence', async (t) => {
  const seed = Date.now() % 1_000_000
  t.comment(`seed ${seed}`)
  const rows = await runDamage({ random: makeRandom(seed), say: (line) => t.comment(line) })
  t.same(failuresOfDamage(rows), [])
  for (const file of ['base.rdb', 'incr.aof', '.body'])
    for (const damage of DAMAGES) {
      const row = rows.find((one) => one.damage === damage && one.file.endsWith(file))
      t.ok(row?.result === 'refused' || row?.result === 'noticed', `${damage} in ${file}: ${row?.result}`)
    }
})
