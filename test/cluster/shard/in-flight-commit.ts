/** in-flight-commit - a commit in flight, and the results of its asks. */
import { test } from 'tap'
import { Rig } from '../../support/store/shard-rig.ts'

test('in-flight-commit: let go while a commit is in doubt, it hands on what waits, and a verdict that comes still counts', async (t) => {
  const rig = await new Rig().open()
  let answer: () => void = () => undefined
  rig.script = async (_commit, apply) => {
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    return apply()
  }
  const ask = rig.ask()
  await rig.pass(0)
  rig.ask()
  rig.shard.letGo()
  answer()
  await rig.pass(100)
  t.same(ask.result, { kind: 'answer', reply: 1 })
  t.equal(rig.forwarded.length, 1, 'what waited goes to the next owner')
})
