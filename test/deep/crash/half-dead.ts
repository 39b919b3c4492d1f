/**
 * A process of which one connection to the store is held or slow, while the others work: what its shards owe is served
 * by another one soon; a process that only listens says that it is not ready, and says that it is again once all is
 * well. One round of what `npm run chaos` does again and again.
 */
import t from 'tap'
import { failuresOfHalfDead, runHalfDead } from '../../chaos/half-dead.ts'

/** On a machine that does nothing else: 20 s and 5 s. */
const BOUNDS = { servedMsMax: 60_000, readyMsMax: 30_000 }

t.test(
  'crash: owners and listeners with one connection that is held or slow: others serve what they owe [crash.half-dead]',
  async (t) => {
    const report = await runHalfDead(1, (line) => t.comment(line))
    t.same(failuresOfHalfDead(report, BOUNDS), [])
    t.equal(report.served.length, 5)
    t.equal(report.unready.length, 5)
    t.same(report.ended, [1], 'the third time ends the process')
    t.ok(report.messages > 100, 'there was load')
  },
)
