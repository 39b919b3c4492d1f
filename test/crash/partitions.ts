/** A small part of what `npm run chaos` does to owners that are away: frozen and cut off while receivers are slow. */
import t from 'tap'
import { describePartitions, runPartitions } from '../chaos/partitions.ts'

const OPTIONS = {
  seed: Number(process.env.SEED ?? 1),
  freezes: 1,
  partitions: 2,
  freezeMs: [14_000, 15_000],
  partitionMs: [14_000, 15_000],
} as const

t.test(
  'crash: owners frozen and cut off while receivers are slow deliver everything once [crash.partitions]',
  async (t) => {
    const report = await runPartitions({ ...OPTIONS, say: (line) => t.comment(line) })
    t.comment(describePartitions(report))
    const { lost, waiting, doubled, falselyRefused, messages } = report
    t.same({ lost, waiting, doubled, falselyRefused }, { lost: 0, waiting: 0, doubled: [], falselyRefused: 0 })
    t.ok(messages > 100, 'there was load')
  },
)
