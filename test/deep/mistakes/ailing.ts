/** A Redis that is frozen, or ended again and again: reported in a sentence with the evidence, and nothing is lost. */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { hears, isReady, Scene } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000
/** On a machine that freezes for ten seconds a series starts again. */
const ENDS_MAX = 20
/**
 * One account sends, so its shard and one with a periodic job each report an unknown outcome once, however often they
 * retry.
 */
const SHARDS_DOUBTED_MAX = 2

const scene = await Scene.make(t)
const service = await scene.start()
const load = await scene.load(service)

t.test('mistakes: Redis is frozen; the report names the signal, and mail is accepted again', async (t) => {
  await load.passes(50)
  const [pid] = scene.redisProcesses()
  process.kill(pid as number, 'SIGSTOP')
  const said = await hears(service, /"reason":"[^"]*","msg":"The store does not answer"/)
  t.match(said, `redis-server ${pid} is stopped by a signal: kill -CONT ${pid} resumes it`)
  process.kill(pid as number, 'SIGCONT')
  await hears(service, /The store answers again/)
  await isReady(service)
  await load.passes(50)
})

t.test('mistakes: Redis is ended again and again; its own words are reported, less and less often', async (t) => {
  const told = (): string[] =>
    service
      .said()
      .split('\n')
      .filter((line) => /Lost redis|Redis ends repeatedly/.test(line))
  let ends = 0
  for (; ends < ENDS_MAX && !told().at(-1)?.includes('"failures":4'); ends += 1) {
    const before = await until(() => scene.redisProcesses()[0], WAIT_MS)
    process.kill(before, ends === 0 ? 'SIGKILL' : 'SIGTERM')
    await until(() => scene.redisProcesses()[0] !== undefined && scene.redisProcesses()[0] !== before, WAIT_MS)
    const { acknowledged } = load
    await until(() => load.acknowledged > acknowledged, WAIT_MS)
  }
  t.match(told()[0], /It logged nothing before its end: it was killed/)
  t.match(told().at(-1), /"failures":4,"reason":"Its last words: User requested shutdown.*Redis ends repeatedly/)
  t.notOk(
    told().some((line) => line.includes('"failures":3')),
    'ever more rarely',
  )
  const doubts = service
    .said()
    .split('\n')
    .filter((line) => line.includes('A commit got no answer')).length
  t.ok(doubts <= ends * SHARDS_DOUBTED_MAX, `${doubts} lines of commits without an answer`)
  await load.end()
  t.equal(await service.kill('SIGTERM'), 0)
  const { acknowledged, lost } = await scene.lostAlone()
  t.ok(acknowledged > 100)
  t.equal(lost, 0)
})
