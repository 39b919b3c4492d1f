/** Two ways to start on one directory: `npm start` and `npm run cluster` share one redis-server, or one is refused. */
import t from 'tap'
import { Scene } from '../../support/mistakes/scene.ts'
import { playTwoWays } from '../../support/mistakes/two-ways.ts'
import { makeRandom } from '../../support/store/random-ops.ts'

/** Either one is first once; `npm run chaos` plays many. */
const ROUNDS = 2
/** Draws one at once and one after the other, and in both a kill and a stop. */
const SEED_WITH_ALL = 8

t.test(
  'mistakes: start and cluster on one directory, in both orders, killed in between: one redis, nothing lost',
  async (t) => {
    const scene = await Scene.make(t)
    const played = await playTwoWays(scene, {
      rounds: ROUNDS,
      random: makeRandom(Number(process.env.SEED ?? SEED_WITH_ALL)),
    })
    t.match(played, { rounds: ROUNDS, mostAtOnce: 1, lost: 0, refused: played.strangers })
    t.ok(played.acknowledged > ROUNDS * 20)
  },
)
