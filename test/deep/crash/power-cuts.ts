/** The power of the machine is cut under load: nothing acknowledged is lost, and a store that syncs nothing loses. */
import t from 'tap'
import { failuresOfPowerCuts, lostByMemory, runPowerCuts } from '../../chaos/power-cuts.ts'
import { POWER_DISK_SKIP } from '../../support/machine/power-disk.ts'
import { makeRandom } from '../../support/store/random-ops.ts'

const CUTS = 10
const skip = POWER_DISK_SKIP

t.test('power: ten cuts under load lose nothing that was acknowledged [crash.power]', { skip }, async (t) => {
  const say = (line: string) => t.comment(line)
  const report = await runPowerCuts({ cuts: CUTS, random: makeRandom(Date.now() % 1_000_000), say })
  t.same(failuresOfPowerCuts(report), [])
  t.ok(report.acknowledged > 200)
  t.ok(report.batches > 10)
  t.ok(report.received > 5)
  t.equal(report.firstRuns, 2)
})

t.test('power: the cut bites: DURABILITY=memory loses messages', { skip }, async (t) => {
  t.ok((await lostByMemory((line) => t.comment(line))) > 0)
})
