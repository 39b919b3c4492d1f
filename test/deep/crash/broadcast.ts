/**
 * broadcast - the service and its Redis are killed while three broadcasts are released and one is cancelled. `KILLS=n`
 * asks for more, `SEED=n` for other choices; `npm run chaos` does it a hundred times.
 */
import t from 'tap'
import { failuresOfBroadcasts, runBroadcasts } from '../../chaos/broadcasts.ts'

const KILLS = Number(process.env.KILLS ?? 4)
const SEED = Number(process.env.SEED ?? 1)
const RECIPIENTS_MIN = 400
/** The number released between two kills, at the pace, while processes start. */
const RECIPIENTS_PER_KILL = 100

t.test(`crash: ${KILLS} kills while broadcasts are released [broadcast.release] [broadcast.read]`, async (t) => {
  const report = await runBroadcasts({
    kills: KILLS,
    recipients: Math.max(RECIPIENTS_MIN, KILLS * RECIPIENTS_PER_KILL),
    seed: SEED,
    say: (line) => t.comment(line),
  })
  t.comment(JSON.stringify(report))
  t.same(failuresOfBroadcasts(report), [])
  t.equal(report.found.length, 3)
  t.ok(report.kills.service > 0 && report.kills.redis > 0, 'both were killed')
})
