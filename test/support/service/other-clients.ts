/**
 * other-clients - clients of a service under attack, in a thread: each connects from its own address, makes a small
 * request and leaves, one after another until the attack ends, and then once more
 *
 * The measured time excludes the standstills of this thread, and the time in which the service was ready to run and
 * got no processor.
 */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { watchStalls } from '../machine/stall.ts'
import { deliverMail } from '../peers/smtp-dialog.ts'

/** Which listener they ask; `report`: they send a small report to the MX listener. */
export type OtherClients = 'http' | 'mx' | 'submission' | 'report'

/** Their results. */
export interface Served {
  readonly asked: number
  /** Refused, cut off or not answered. */
  readonly failed: number
  readonly longestMs: number
}

const ADDRESS = '127.0.66.1'
const EVERY_MS = 50
const ANSWER_MS_MAX = 30_000

interface Asked {
  readonly kind: OtherClients
  readonly port: number
  readonly token: string
  /** Process of the service. */
  readonly pid: number
}

async function run({ kind, port, token, pid }: Asked): Promise<Served> {
  let isEnding = false
  parentPort?.once('message', () => {
    isEnding = true
  })
  let stop: () => unknown = () => undefined
  const stalls = watchStalls({
    teardown(end: () => unknown) {
      stop = end
    },
  })
  const asks = { http: () => askHttp(port, token), report: () => sendReport(port) }
  const ask = kind === 'http' || kind === 'report' ? asks[kind] : () => askSmtp(port)
  const seen = { asked: 0, failed: 0, longestMs: 0 }
  for (let isLast = false; !isLast; ) {
    isLast = isEnding
    const waitedMs = processorWaitMs(pid)
    const fromMs = performance.now()
    const isServed = await ask().catch(() => false)
    const toMs = performance.now()
    seen.asked += 1
    if (!isServed) seen.failed += 1
    const machineMs = stalls.during(fromMs, toMs) + processorWaitMs(pid) - waitedMs
    seen.longestMs = Math.max(seen.longestMs, toMs - fromMs - machineMs)
    await pause(EVERY_MS)
  }
  stop()
  return seen
}

/** How long the main thread of a process has waited for a processor (proc(5), schedstat); 0 if not counted. */
function processorWaitMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

function askHttp(port: number, token: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` }
    const options = { host: '127.0.0.1', localAddress: ADDRESS, port, path: '/v1/server', headers, agent: false }
    const asked = request({ ...options, timeout: ANSWER_MS_MAX }, (answer) => {
      answer.resume().on('error', reject)
      answer.on('end', () => resolve(answer.statusCode === 200))
    })
    asked.on('timeout', () => asked.destroy(new Error('No answer')))
    asked.on('error', reject)
    asked.end()
  })
}

async function sendReport(port: number): Promise<boolean> {
  return (await deliverMail(port, 'postmaster', 'Subject: A report\n\nOf a person.', ADDRESS)).startsWith('250')
}

function askSmtp(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', localAddress: ADDRESS, port, timeout: ANSWER_MS_MAX })
    let text = ''
    socket.setEncoding('latin1')
    socket.on('timeout', () => socket.destroy(new Error('No answer')))
    socket.on('error', reject)
    socket.on('close', () => resolve(false))
    socket.once('data', () => socket.write('EHLO other.example\r\n'))
    socket.on('data', (piece: string) => {
      text += piece
      if (!/^250 .*\r\n/m.test(text)) return
      socket.end('QUIT\r\n')
      resolve(true)
    })
  })
}

if (!isMainThread) parentPort?.postMessage(await run(workerData))
