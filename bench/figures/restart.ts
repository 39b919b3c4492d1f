/**
 * restart - seconds from SIGTERM to the first 200 of the next process, with messages in the store
 *
 * One store, filled once. First the way of the documented units: `sendwright store` runs Redis, and the service is
 * restarted beside it. Then the way of `npm start`, in which the service ends its Redis, and the next one reads the
 * file.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { FirstRun } from '../../src/service/first-start.ts'
import { uncertainRecipients } from '../../test/support/clients/settle.ts'
import { ROOT } from '../../test/support/machine/root.ts'
import { until } from '../../test/support/machine/until.ts'
import { raiseLimits } from '../../test/support/service/crash-scene.ts'
import { makeClient, sendBatches } from '../load/batches.ts'
import { formatNumber, formatTable } from '../table.ts'
import { endWithUs, exited, NODE, type Place, signal, start, stop, withPlace } from './start.ts'

const TARGET_SECONDS = 2
const PERSONS = 2_000
const CONNECTIONS = 4
const DELIVERED_MS_MAX = 600_000

/** Prints the best and the worst of `rounds` restarts of either way. */
export async function benchRestart({ rounds, messages }: { rounds: number; messages: number }): Promise<void> {
  await withPlace(async (place) => {
    const [program, launch] = NODE
    const store = spawn(program, [launch as string, 'store', '--port', '0'], {
      cwd: ROOT,
      env: place.environment,
      stdio: ['ignore', 'ignore', 'inherit'],
      detached: true,
    })
    endWithUs(store)
    const socket = `unix://${join(place.dir, 'redis.sock')}`
    const beside: Place = { ...place, environment: { ...place.environment, REDIS_URL: socket } }
    const { child } = await start(NODE, beside)
    await fill(place, messages)
    const kept = await restarts(child, beside, rounds)
    signal(kept.child, 'SIGTERM')
    await exited(kept.child)
    await stop(store, place)
    const own = await restarts((await start(NODE, place)).child, place, rounds)
    await stop(own.child, place)
    console.log(
      formatTable([
        [`restart, ${formatNumber(messages)} messages, ${rounds} rounds`, 'best, s', 'worst, s', 'target', ''],
        rowOf('the service beside sendwright store', kept.seconds, TARGET_SECONDS),
        rowOf('the service with its own Redis', own.seconds, null),
      ]),
    )
  })
}

function rowOf(what: string, seconds: readonly number[], max: number | null): string[] {
  const [best, worst] = [Math.min(...seconds), Math.max(...seconds)]
  const verdict = max === null ? ['', ''] : [`<= ${max}`, best <= max ? 'reached' : 'missed']
  return [what, formatNumber(best, 2), formatNumber(worst, 2), ...verdict]
}

/** Accepts this many messages, and waits until all of them are delivered. */
async function fill({ dir, port, environment }: Place, messages: number): Promise<void> {
  const firstRun = JSON.parse(readFileSync(join(dir, 'first-run.json'), 'utf8')) as FirstRun
  await raiseLimits(Number(environment.OPERATOR_PORT), firstRun)
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const messageOf = (n: number): object => ({
    from: 'you@simulator.test',
    to: [`person${n % PERSONS}@simulator.test`],
    subject: 'Hello',
    text: 'It works.',
  })
  await sendBatches(makeClient({ port, keys: [firstRun.testServer.token] }, agent), messages, messageOf)
  agent.destroy()
  const redis = new Redis({ path: join(dir, 'redis.sock') })
  await until(async () => (await uncertainRecipients(redis)).unclear.length === 0, DELIVERED_MS_MAX)
  redis.disconnect()
}

/**
 * Restarts a process like systemd: a signal, its end, the next process. Returns the seconds of each restart, and the
 * last process.
 */
async function restarts(
  first: ChildProcess,
  place: Place,
  rounds: number,
): Promise<{ child: ChildProcess; seconds: readonly number[] }> {
  const seconds: number[] = []
  let child = first
  for (let round = 0; round < rounds; round++) {
    const startedAtMs = performance.now()
    signal(child, 'SIGTERM')
    await exited(child)
    child = (await start(NODE, place)).child
    seconds.push((performance.now() - startedAtMs) / 1000)
  }
  return { child, seconds }
}
