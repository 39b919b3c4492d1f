/** All Redis of a cluster and all processes lose their power at once, and a replica is back first. */
import t from 'tap'
import { failuresOfJointCuts, runJointCuts } from '../../../chaos/joint-cuts.ts'
import { POWER_DISK_SKIP } from '../../../support/machine/power-disk.ts'
import { makeRandom } from '../../../support/store/random-ops.ts'

const CUTS = 2
const skip = POWER_DISK_SKIP

t.test(
  'joint cuts: nothing acknowledged is lost, and a damaged value is an error [crash.power]',
  { skip },
  async (t) => {
    const say = (line: string) => t.comment(line)
    const report = await runJointCuts({ cuts: CUTS, random: makeRandom(Date.now() % 1_000_000), say })
    t.same(failuresOfJointCuts(report), [])
    t.ok(report.acknowledged > CUTS * 40)
    t.equal(report.damagedStatus, 503)
  },
)
