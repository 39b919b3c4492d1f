/**
 * two-ways - a store that is started in two ways on one directory, `npm start` and `npm run cluster`, one after the
 * other, both at once, ended and killed, under load: at every moment there is one redis-server in the directory, and
 * nothing is lost.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../machine/port.ts'
import { endOf, isReady, type Scene, type Sending, type Started } from './scene.ts'

const LOOK_MS = 20
const MESSAGES = 30

export interface TwoWays {
  readonly rounds: number
  /** The most redis processes that were seen in the directory at one moment. */
  readonly mostAtOnce: number
  readonly acknowledged: number
  readonly lost: number
  /** Starts with another secret, and the number of them that were refused with the sentence. */
  readonly strangers: number
  readonly refused: number
}

/** Runs so many rounds. `random` answers numbers in [0, 1). */
export async function playTwoWays(
  scene: Scene,
  { rounds, random, uid }: { rounds: number; random: () => number; uid?: number },
): Promise<TwoWays> {
  const watched = watchProcesses(scene)
  const other = { HTTP_PORT: String(await freePort()), OPERATOR_PORT: String(await freePort()) }
  const user = uid === undefined ? {} : { uid }
  const ways = {
    cluster: () => scene.cluster(['redis=1', 'all=1'], { ...user, ready: false }),
    start: () => scene.start({ ...user, settings: other, ready: false }),
  }
  const counts = { strangers: 0, refused: 0 }
  let load: Sending | null = null
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? (['cluster', 'start'] as const) : (['start', 'cluster'] as const)
    const first = await ways[order[0]]()
    if (random() < 0.5) await isReady(first)
    const second = await ways[order[1]]()
    const [cluster] = order[0] === 'cluster' ? [first, second] : [second, first]
    await Promise.all([isReady(first), isReady(second)])
    load ??= await scene.load(cluster as Started)
    await load.passes(MESSAGES)
    const stranger = await scene.start({
      ...user,
      settings: {
        ...other,
        HTTP_PORT: String(await freePort()),
        OPERATOR_PORT: String(await freePort()),
        SECRET_KEY: 'x'.repeat(40),
      },
      ready: false,
    })
    counts.strangers += 1
    if ((await endOf(stranger)) === 1 && /SECRET_KEY does not match this store/.test(stranger.said()))
      counts.refused += 1
    // One of the two is ended or killed, and the other continues with the one redis. Then that one ends too.
    const [victim, survivor] = random() < 0.5 ? [first, second] : [second, first]
    await endAll(victim, random() < 0.5 ? 'SIGKILL' : 'SIGTERM')
    if (survivor === cluster) await load.passes(MESSAGES)
    await endAll(survivor, random() < 0.3 ? 'SIGKILL' : 'SIGTERM')
  }
  const last = await scene.cluster(['redis=1', 'all=1'], user)
  await load?.end()
  const { acknowledged, lost } = await scene.lost()
  await endAll(last, 'SIGTERM')
  return { rounds, mostAtOnce: watched.end(), acknowledged, lost, ...counts }
}

/** Ends a process. If it is killed, its children end too, except the redis, which survives. */
async function endAll(started: Started, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const children = signal === 'SIGKILL' ? childrenOf(started.pid) : []
  await started.kill(signal)
  for (const pid of children) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It went with its parent.
    }
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** Looks again and again how many redis processes there are. */
function watchProcesses(scene: Scene): { end(): number } {
  let most = 0
  let isEnded = false
  const look = async (): Promise<void> => {
    while (!isEnded) {
      most = Math.max(most, scene.redisProcesses().length)
      await pause(LOOK_MS)
    }
  }
  void look()
  return {
    end() {
      isEnded = true
      return most
    },
  }
}
