/**
 * crash-http - requests as bytes or as a client sends them, and the rules that every answer of the service must
 * satisfy.
 */
import { readFileSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { ERROR } from '../../../schemas/error.ts'
import { compileBody } from '../../../src/http/shape/validate.ts'

const ANSWER_MS_MAX = 60_000
const AGAIN_MAX = 3
const AGAIN_MS = 500
/** Refusals that the edge gives in plain text. */
const TEXT_REFUSALS: ReadonlyMap<number, string> = new Map([[413, '413 Request Entity Too Large']])

const isError = compileBody(ERROR)

export interface Sent {
  readonly port: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body?: Buffer | string
}

export interface Came {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export const agent: Agent = new Agent({ keepAlive: true, maxSockets: 8 })

/**
 * Sends one request over a kept connection. If the service has just ended that connection, the request is sent over a
 * new one. Rejects if there is no answer.
 */
export function send(asked: Sent, by: Agent | false = agent): Promise<Came> {
  const { port, method, path, headers, body } = asked
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = { host: '127.0.0.1', port, method, path, agent: by, timeout: ANSWER_MS_MAX }
    const sent = request({ ...options, headers: { ...length, ...headers } })
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(send(asked, false))
      else reject(error)
    })
    sent.on('timeout', () => sent.destroy(new Error('No answer in time')))
    sent.on('response', (came) => {
      let text = ''
      came.setEncoding('utf8')
      came.on('data', (piece: string) => (text += piece))
      came.on('error', reject)
      came.on('end', () => resolve({ status: came.statusCode ?? 0, headers: came.headers, text }))
    })
    sent.end(body)
  })
}

/**
 * Sends one request, and again after a 503 with a Retry-After: after a standstill of the machine the service rightly
 * refuses waiting requests. A request that is refused each time returns that refusal.
 */
export async function sendAgain(sent: Sent): Promise<Came> {
  for (let tries = 0; ; tries += 1) {
    const came = await send(sent)
    const isAway = came.status === 503 && came.headers['retry-after'] !== undefined
    if (!isAway || tries === AGAIN_MAX) return came
    await pause(AGAIN_MS)
  }
}

/**
 * The fault of an answer, null if there is none: 5xx, no Request-Id, a refusal that neither the contract nor the API
 * of a door knows.
 */
export function wrongOf({ status, headers, text }: Came): string | null {
  if (status >= 500) return `status ${status}: ${text.slice(0, 200)}`
  if (!/^[0-9a-f-]{36}$/.test(String(headers['request-id']))) return `status ${status} without Request-Id`
  if (status < 400) return null
  if (headers['content-type'] === 'text/plain') {
    return TEXT_REFUSALS.get(status) === text ? null : `status ${status} in text: ${text.slice(0, 200)}`
  }
  const body = JSON.parse(text)
  if (body.statusCode === status && typeof body.name === 'string' && typeof body.message === 'string') return null
  if (typeof body.ErrorCode === 'number' && typeof body.Message === 'string') return null
  const checked = isError(body, false)
  return checked.ok ? null : `status ${status}: ${JSON.stringify(checked.issues)} in ${text.slice(0, 200)}`
}

/** Memory of a process that is in use, in MB. */
export function residentMb(pid: number): number {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1024
}
