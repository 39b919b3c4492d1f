/**
 * A cluster without a process for bounces and complaints: its log reports that, and so does doctor, with the remedy.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { hears, Scene } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000

t.test('mistakes: a cluster without mx is warned of', async (t) => {
  const scene = await Scene.make(t)
  const service = await scene.cluster(['redis=1', 'http=1', 'actors=1'])
  // A process that only listens does not wait for the first account.
  await until(() => existsSync(join(scene.dataDir, 'first-run.json')), WAIT_MS)
  const doctor = async () => {
    const headers = { authorization: `Bearer ${scene.firstRun.operatorToken}`, connection: 'close' }
    const answer = await fetch(`http://127.0.0.1:${service.operatorPort}/v1/operator/health`, { headers })
    const { findings } = (await answer.json()) as { findings: { name: string }[] }
    return findings.find(({ name }) => name === 'mx-listener')
  }
  const none = /No process takes bounces and complaints/
  t.match(await doctor(), { status: 'warning', message: none, fix: /ROLES=mx \(npm run cluster -- mx=1\)/ })
  const said = await hears(service, /actors .*No process takes bounces and complaints.*/)
  t.match(said, /Start one with ROLES=mx/)
  t.equal(await service.kill('SIGTERM'), 0)
})
