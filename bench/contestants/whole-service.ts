/**
 * whole-service - the product as started by `sendwright start`, in a process of its own, with the keys of its first
 * start
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '../../test/support/machine/until.ts'
import { freePort } from '../free-port.ts'
import { childEnvironment } from '../load/wrk.ts'
import type { BenchStore } from '../store.ts'
import { NODE_OPTIONS } from './host.ts'
import { SECRET_KEY } from './product-service.ts'

const READY_MS_MAX = 30_000

/** A service that runs. */
export interface WholeService {
  readonly pid: number
  readonly httpPort: number
  readonly operatorPort: number
  readonly mxPort: number
  readonly accountId: string
  /** Tokens of the first account's servers, and of the operator. */
  readonly live: string
  readonly test: string
  readonly operator: string
  /** A request to the public listener, or with the operator's token to the other. Throws Error unless it is a 2xx. */
  call(method: string, path: string, token: string, body?: object): Promise<unknown>
  stop(): Promise<void>
}

/** Starts it on a store. In: settings beside those that every measurement has. */
export async function startWholeService(
  { socketPath, dir }: BenchStore,
  settings: Readonly<Record<string, string>> = {},
): Promise<WholeService> {
  const dataDir = mkdtempSync(join(dir, 'service-'))
  const [httpPort, operatorPort, mxPort] = [await freePort(), await freePort(), await freePort()]
  const env = {
    ...childEnvironment(),
    REDIS_URL: `unix://${socketPath}`,
    SECRET_KEY,
    DATA_DIR: dataDir,
    CONTENT_STORE: 'file',
    HTTP_PORT: String(httpPort),
    OPERATOR_PORT: String(operatorPort),
    MX_PORT: String(mxPort),
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'error',
    // As `sendwright` and the Procfile start it.
    UV_THREADPOOL_SIZE: process.env.UV_THREADPOOL_SIZE ?? '8',
    ...settings,
  }
  const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
  const child = spawn(process.execPath, [...NODE_OPTIONS, main, 'start'], { env, stdio: 'ignore' })
  process.once('exit', () => void child.kill('SIGKILL'))
  const at = `http://127.0.0.1:${operatorPort}`
  await until(async () => (await fetch(`${at}/readyz`).catch(() => null))?.status === 200, READY_MS_MAX)
  const firstRun = JSON.parse(readFileSync(join(dataDir, 'first-run.json'), 'utf8'))
  const operator: string = firstRun.operatorToken
  return {
    pid: child.pid as number,
    httpPort,
    operatorPort,
    mxPort,
    accountId: firstRun.account.accountId,
    live: firstRun.liveServer.token,
    test: firstRun.testServer.token,
    operator,
    async call(method, path, token, body) {
      const answer = await fetch(token === operator ? `${at}${path}` : `http://127.0.0.1:${httpPort}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
      return text === '' ? null : JSON.parse(text)
    },
    async stop() {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    },
  }
}
