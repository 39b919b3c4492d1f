/**
 * A small part of the partitions in `npm run chaos`: owners frozen and cut off while receivers are slow, each in its
 * own fleet.
 */
import t from 'tap'
import { describePartitions, runPartitions } from '../../chaos/partitions.ts'

const SEED = Number(process.env.SEED ?? 1)
/** Longer than other processes consider a worker alive. */
const AWAY_MS = [14_000, 15_000] as const
const FAULTS = [
  ['frozen', { freezes: 1, partitions: 0 }],
  ['cut off both ways', { freezes: 0, partitions: 1, names: null }],
  ['severed, and commits nothing', { freezes: 0, partitions: 1, names: ['commit'], firstWay: 1 }],
] as const

t.jobs = FAULTS.length
for (const [place, [what, faults]] of FAULTS.entries())
  t.test(
    `crash: an owner that is ${what} while receivers are slow delivers everything once [crash.partitions]`,
    async (t) => {
      const options = { ...faults, seed: SEED + place, freezeMs: AWAY_MS, partitionMs: AWAY_MS }
      const report = await runPartitions({ ...options, say: (line) => t.comment(line) })
      t.comment(describePartitions(report))
      const { lost, waiting, doubled, falselyRefused, messages } = report
      t.same({ lost, waiting, doubled, falselyRefused }, { lost: 0, waiting: 0, doubled: [], falselyRefused: 0 })
      t.ok(messages > 30, 'there was load')
    },
  )
