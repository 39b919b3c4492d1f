/**
 * A process with one blocked or slow connection to the store, while the others work: other processes soon take over
 * the work of its shards; a process that only listens reports itself as not ready, and as ready again once all is
 * well. One round of `npm run chaos`.
 */
import t from 'tap'
import { failuresOfHalfDead, runHalfDead } from '../../chaos/half-dead.ts'

/** On an otherwise idle machine: 20 s and 5 s. */
const BOUNDS = { servedMsMax: 60_000, readyMsMax: 30_000 }

t.test(
  'crash: owners and listeners with one blocked or slow connection: others take over their work [crash.half-dead]',
  async (t) => {
    const report = await runHalfDead(1, (line) => t.comment(line))
    t.same(failuresOfHalfDead(report, BOUNDS), [])
    t.equal(report.served.length, 5)
    t.equal(report.unready.length, 5)
    t.same(report.ended, [1], 'the third time ends the process')
    t.ok(report.messages > 100, 'there was load')
  },
)
