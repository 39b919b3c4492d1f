/**
 * A small `npm run chaos`: several processes under load, each kind of fault once or a few times. `SEED=n` repeats a
 * run's choices.
 */
import t from 'tap'
import { describeChaos, failuresOf } from '../../chaos/report.ts'
import { runChaos } from '../../chaos/run.ts'

const OPTIONS = {
  seed: Number(process.env.SEED ?? 1),
  kills: 3,
  falls: 1,
  stops: 1,
  // Ten silent seconds are a death.
  stopMs: 11_500,
  rolls: 1,
  cuts: 1,
  storms: 1,
  clients: 16,
  isStrict: false,
  // The machine may be busy. The real bound is that of `npm run chaos`.
  recoveryMsMax: 60_000,
}

t.test(
  'crash: several processes, killed, frozen, restarted and cut off, lose and double nothing [crash.chaos]',
  async (t) => {
    t.comment(`SEED=${OPTIONS.seed}`)
    const options = { ...OPTIONS, say: (line: string) => t.comment(line) }
    const report = await runChaos(options)
    t.comment(describeChaos(report))
    t.same(failuresOf(report, options), [])
    t.ok(report.messages > 500, 'there was load')
  },
)
