/**
 * service - the real service for one test file: its own Redis and data directory, free ports, real HTTP
 *
 * `call` requests it as a client would and checks every answer against the contract. A body that its schema does not
 * allow fails the test.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findRefusals } from '../../../schemas/document/openapi.ts'
import { ERROR } from '../../../schemas/error.ts'
import { ROUTES, type Route } from '../../../schemas/routes.ts'
import { compileBody } from '../../../src/http/shape/validate.ts'
import { type RunningService, type ServiceOptions, startService } from '../../../src/main.ts'
import { type Config, readConfig } from '../../../src/process/config.ts'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { freePort } from '../machine/port.ts'
import { quickenScrypt } from '../machine/quick-scrypt.ts'
import { startRedis, type TestRedis } from '../store/redis.ts'
import { startHost } from './host.ts'

const SECRET_KEY = 'a secret of the tests that is long enough'
/** A 503 that took this long was a standstill of the machine. Nothing was accepted, so the request is repeated. */
const STOOD_STILL_MS = 1_000
const TRIES = 3

export interface Called {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  readonly json: any
}

export interface CallOptions {
  readonly token?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface TestService {
  readonly redis: TestRedis
  readonly config: Config
  readonly dataDir: string
  readonly firstRun: FirstRun
  readonly service: RunningService
  /** Calls the public listener. In: `POST /v1/email`. */
  call(what: string, options?: CallOptions): Promise<Called>
  /** Calls the operator listener. */
  operate(what: string, options?: CallOptions): Promise<Called>
  /** Calls the operator listener of the process that runs the actors: the same one, unless the topology is `apart`. */
  operateActors(what: string, options?: CallOptions): Promise<Called>
  /** Stops the service, keeps store and data directory, and starts it again. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts a service. In: settings that override those of the tests. If `TOPOLOGY` is `apart` it is two processes,
 * `http` as a separate one and `actors` in this one, with the changes of `options`, and both serve HTTP with
 * `node:http`. Tests of routes run both ways (test/all.ts).
 */
export async function startTestService(
  environment: Readonly<Record<string, string>> = {},
  options: ServiceOptions = {},
): Promise<TestService> {
  quickenScrypt()
  const redis = await startRedis()
  const dataDir = environment.DATA_DIR ?? mkdtempSync(join(tmpdir(), 'sendwright-service-'))
  const settings = {
    REDIS_URL: `unix://${redis.socketPath}`,
    SECRET_KEY,
    DATA_DIR: dataDir,
    HTTP_PORT: String(await freePort()),
    OPERATOR_PORT: String(await freePort()),
    // Received mail needs a content store. A test of it names one.
    MX_PORT: environment.CONTENT_STORE === undefined ? '0' : String(await freePort()),
    SUBMISSION_PORT: String(await freePort()),
    SUBMISSION_TLS_PORT: String(await freePort()),
    EDGE_RATE: '0',
    HTTP_ENGINE: process.env.TOPOLOGY === 'apart' ? 'node' : (process.env.HTTP_ENGINE ?? 'auto'),
    LOG_LEVEL: 'silent',
    ...environment,
  }
  const config = configOf(settings)
  const start = process.env.TOPOLOGY === 'apart' ? startApart : startWhole
  let running = await start(settings, options)
  const firstRun = JSON.parse(readFileSync(join(dataDir, 'first-run.json'), 'utf8')) as FirstRun
  return {
    redis,
    config,
    dataDir,
    firstRun,
    get service() {
      return running.service
    },
    call: (what, asked) => callAt(`http://127.0.0.1:${config.httpPort}`, what, asked),
    operate: (what, asked) => callAt(`http://127.0.0.1:${config.operatorPort}`, what, asked),
    operateActors: (what, asked) => callAt(`http://127.0.0.1:${running.actorsPort}`, what, asked),
    async restart() {
      await running.stop()
      running = await start(settings, options)
    },
    async stop() {
      await running.stop()
      await redis.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

type Settings = Readonly<Record<string, string>>

/** The running part: the service, or the half of it in this process. */
interface Run {
  readonly service: RunningService
  /** Operator port of the process with the actors. */
  readonly actorsPort: number
  stop(): Promise<void>
}

async function startWhole(settings: Settings, options: ServiceOptions): Promise<Run> {
  const config = configOf(settings)
  const service = await startService(config, { print: () => undefined, ...options })
  return { service, actorsPort: config.operatorPort, stop: () => service.stop() }
}

async function startApart(settings: Settings, options: ServiceOptions): Promise<Run> {
  const ownPort = String(await freePort())
  const actors = configOf({ ...settings, ROLES: 'actors', OPERATOR_PORT: ownPort })
  // At once, because the first account's file names the URLs of the process with HTTP.
  const [service, http] = await Promise.all([
    startService(actors, { print: () => undefined, ...options }),
    startHost({ ...settings, ROLES: 'http,mx,submission' }),
  ])
  return {
    service,
    actorsPort: actors.operatorPort,
    async stop() {
      await http.kill('SIGTERM')
      await service.stop()
    },
  }
}

/** Reads settings as a start would; a mistake among them is the test's own. */
export function configOf(environment: Readonly<Record<string, string>>): Config {
  const result = readConfig(environment)
  if (!result.ok) throw new Error(result.mistakes.join('; '))
  return result.config
}

/** Calls a listener and checks the answer against the contract. In: its address, and the document of the contract. */
export async function callAt(baseUrl: string, what: string, options: CallOptions = {}): Promise<Called> {
  for (let tries = 1; ; tries += 1) {
    const startedAtMs = performance.now()
    const called = await callOnce(baseUrl, what, options)
    const isStill = called.status === 503 && performance.now() - startedAtMs >= STOOD_STILL_MS
    if (!isStill || tries === TRIES) return called
  }
}

async function callOnce(baseUrl: string, what: string, { token, body, headers }: CallOptions): Promise<Called> {
  const [method = 'GET', path = '/'] = what.split(' ')
  const response = await fetch(baseUrl + path, {
    method,
    headers: {
      // The global agent would keep the test alive for seconds.
      connection: 'close',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  const called = { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null }
  requireSchema(method, path, called)
  return called
}

/** Throws if an answer violates the contract of its route and status. */
function requireSchema(method: string, path: string, { status, headers, json, text }: Called): void {
  const what = `${method} ${path.replace(/[0-9a-f-]{36}/, '<id>')} ${status}`
  if (!/^[0-9a-f-]{36}$/.test(headers.get('request-id') ?? '')) throw new Error(`${what}: no Request-Id`)
  const route = Object.values<Route>(ROUTES).find((one) => one.method === method && matches(one.path, path))
  const known = route === undefined ? null : findRefusals(route).map(({ code }) => code as string)
  // A path of the other listener is not known here.
  const isElsewhere = json?.error === 'not_found' && route?.path.includes('{') === false
  if (status >= 400 && json !== null && known !== null && !known.includes(json.error) && !isElsewhere)
    throw new Error(`${what}: ${json.error} is not among the refusals of its row`)
  const schema = status >= 400 && json !== null ? ERROR : status < 300 ? (route?.success.body ?? null) : null
  if (status < 300 && route?.success.status !== status) throw new Error(`${what}: not the status of success`)
  if (schema === null) return
  const checked = compileBody(schema)(structuredClone(json))
  if (!checked.ok) throw new Error(`${what}: ${JSON.stringify(checked.issues)} in ${text}`)
}

function matches(pattern: string, path: string): boolean {
  const expression = pattern.replace(/\{[a-zA-Z]+\}/g, '[^/?]+')
  return new RegExp(`^${expression}(\\?.*)?$`).test(path)
}
