/** loop - the reports about a commit and their order, over a store whose verdicts the test decides. */
import t from 'tap'
import { Rig } from '../../support/store/shard-rig.ts'

t.test(
  'loop: a note to the operator is logged once its commit is confirmed, once, and not for a refused one',
  async (t) => {
    const rig = await new Rig().open()
    const verdicts = [{ kind: 'refused', reason: 'OOM' }, { kind: 'lost' }] as const
    let commits = 0
    rig.script = async (_commit, apply) => verdicts[commits++] ?? (await apply())
    rig.ask({ says: 'refused' })
    await rig.pass(2_000)
    t.same(rig.notes, [])
    rig.ask({ says: 'doubted' })
    t.same(rig.notes, [], 'not before there is a verdict')
    await rig.pass(2_000)
    t.same(rig.notes, [{ says: 'doubted' }], 'of a commit that was sent twice once')
    t.ok(commits > verdicts.length)
  },
)
