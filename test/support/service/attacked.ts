/**
 * attacked - a real service in its own process, an attack on it, and the service of other clients meanwhile: the rig
 * of test/attacks
 *
 * A case is a few lines: `startAttacked`, one harmless call of the attacked function (a first call compiles code,
 * which is a pause), then `during(attack)` for each attack, which `isHarmless` judges. Other clients run in their own
 * thread, from their own address, so that the attack's work in the test's process does not delay them.
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Test } from 'tap'
import { longestPause, pauseProbe } from '../machine/pauses.ts'
import { freePort } from '../machine/port.ts'
import { type RunningScene, startScene } from './crash-scene.ts'
import type { OtherClients, Served } from './other-clients.ts'
import { type Called, type CallOptions, callAt } from './service.ts'

/** An attack may not hold the loop, nor another client, for longer. */
const PAUSE_MS_MAX = 100
const SERVED_MS_MAX = 1_000

export interface Attacked extends RunningScene {
  /** Calls the public listener. In: `POST /v1/email`. */
  call(what: string, options?: CallOptions): Promise<Called>
  /** Calls the operator's listener. */
  operate(what: string, options?: CallOptions): Promise<Called>
  readonly mxPort: number
  readonly submissionPort: number
  /**
   * Runs an attack and then settles until another client has been served. In: the attack, and the listeners that other
   * clients use meanwhile.
   */
  during(attack: () => Promise<unknown>, others?: readonly OtherClients[]): Promise<Harm>
}

/** The effects of an attack. */
export interface Harm {
  /** Longest pause of the service's event loop. */
  readonly pauseMs: number
  /** Most memory that the process held above what it held before, in megabytes. */
  readonly grownMb: number
  /** The service of other clients, by listener. */
  readonly others: Readonly<Record<string, Served>>
}

/**
 * Starts it, and stops it with the test.
 * @param settings over those of the tests
 * @param heapMb bound of the heap, for attacks on memory
 */
export async function startAttacked(
  t: Pick<Test, 'teardown'>,
  settings: Readonly<Record<string, string>> = {},
  heapMb?: number,
): Promise<Attacked> {
  const [mxPort, submissionPort] = [await freePort(), await freePort()]
  const probe = pauseProbe(join(process.env.STORES_DIR ?? '/tmp', `pauses-${process.pid}-${mxPort}`))
  const nodeArgs = [...probe.nodeArgs, ...(heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`])]
  const ports = { CONTENT_STORE: 'file', MX_PORT: String(mxPort), SUBMISSION_PORT: String(submissionPort) }
  const scene = await startScene({ ...ports, ...probe.env, ...settings }, {}, { nodeArgs })
  t.teardown(async () => {
    await scene.host.kill('SIGTERM')
    await scene.end()
  })
  const httpPort = Number(scene.settings.HTTP_PORT)
  const { token } = scene.firstRun.testServer
  return {
    ...scene,
    call: (what, asked) => callAt(`http://127.0.0.1:${httpPort}`, what, asked),
    operate: (what, asked) => callAt(`http://127.0.0.1:${scene.settings.OPERATOR_PORT}`, what, asked),
    mxPort,
    submissionPort,
    async during(attack, others = ['http']) {
      const sinceMs = Date.now()
      const beforeKb = resetPeak(scene.host.pid)
      const shared = { token, pid: scene.host.pid }
      const port = { http: httpPort, mx: mxPort, report: mxPort, submission: submissionPort }
      const workers = others.map((kind) => ({ kind, worker: startOthers({ ...shared, kind, port: port[kind] }) }))
      try {
        await attack()
      } finally {
        for (const { worker } of workers) worker.postMessage('end')
      }
      const served = await Promise.all(workers.map(async ({ kind, worker }) => [kind, await servedBy(worker)] as const))
      if (!scene.host.isRunning()) throw new Error(`The service ended: ${scene.host.said()}`)
      return {
        pauseMs: longestPause(probe.env.PAUSES_FILE as string, sinceMs),
        grownMb: (peakKb(scene.host.pid) - beforeKb) / 1024,
        others: Object.fromEntries(served),
      }
    },
  }
}

/** Asserts that an attack did no harm: pauses, other clients and, if `grownMb` is given, memory. */
export function isHarmless(t: Test, harm: Harm, { grownMb }: { grownMb?: number } = {}): void {
  t.ok(harm.pauseMs < PAUSE_MS_MAX, `the loop paused for ${harm.pauseMs} ms at most`)
  for (const [kind, { asked, failed, longestMs }] of Object.entries(harm.others)) {
    t.ok(asked > 0 && failed === 0, `${kind}: ${failed} of ${asked} other clients failed`)
    t.ok(longestMs < SERVED_MS_MAX, `${kind}: the slowest of the others was served in ${Math.round(longestMs)} ms`)
  }
  if (grownMb !== undefined) t.ok(harm.grownMb < grownMb, `${Math.round(harm.grownMb)} MB of memory more at most`)
}

function startOthers(workerData: object): Worker {
  // The runner's loader would answer in place of this thread, because tap sends its own messages to a parent.
  return new Worker(join(import.meta.dirname, 'other-clients.js'), { workerData, execArgv: [] })
}

async function servedBy(worker: Worker): Promise<Served> {
  const [served] = (await once(worker, 'message')) as [Served]
  return served
}

/** Sets the peak to the present use (proc(5), clear_refs), and returns it in kilobytes. */
function resetPeak(pid: number): number {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  return peakKb(pid)
}

function peakKb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
