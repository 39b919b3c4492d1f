/** client - asks the API for a command: finds the address and the key, and tells a refusal in words.
 *
 *  The key: `--token`, else SENDWRIGHT_TOKEN, else the fitting one of DATA_DIR/first-run.json.
 *  The address: `--url`, else BASE_URL or HTTP_HOST and HTTP_PORT, else first-run.json's, else the default port.
 *  What the operator asks goes to the operator listener: SENDWRIGHT_OPERATOR_TOKEN, OPERATOR_HOST and OPERATOR_PORT.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorBody, Issue } from '../../schemas/error.ts'
import { readClientSettings } from '../process/config.ts'
import { CommandFailure } from './failure.ts'

/** Longer than the service ever waits before it answers or closes. */
const ANSWER_MS_MAX = 40_000
const URL_DEFAULT = 'http://127.0.0.1:8080'
const OPERATOR_URL_DEFAULT = 'http://127.0.0.1:8081'

/** Options that every command of the API takes. */
export interface ClientOptions {
  url?: string
  token?: string
  json?: boolean
}

/** Whose key a command speaks with. */
export type KeyOwner = 'account' | 'testServer' | 'operator'

/** What first-run.json holds, as far as commands use it. */
interface FirstRun {
  baseUrl: string
  operatorUrl: string
  operatorToken: string
  account: { token: string }
  testServer: { token: string; serverId: string }
}

export interface Client {
  get<Answer>(path: string): Promise<Answer>
  post<Answer>(path: string, body?: object, headers?: Record<string, string>): Promise<Answer>
  /** An answer that goes on, as it comes. Throws CommandFailure when it is refused, Error when there is none. */
  open(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>
}

/**
 * Makes the client of one command.
 * @param owner whose key of first-run.json fits: the account's, the test server's or the operator's
 * @throws CommandFailure when no key is to be found
 */
export function makeClient(options: ClientOptions, owner: KeyOwner): Client {
  const settings = readClientSettings()
  const firstRun = readFirstRun(settings.dataDir)
  const isOperator = owner === 'operator'
  const known = isOperator
    ? { token: settings.operatorToken ?? firstRun?.operatorToken, url: settings.operatorUrl ?? firstRun?.operatorUrl }
    : { token: settings.token ?? firstRun?.[owner].token, url: settings.url ?? firstRun?.baseUrl }
  const token = options.token ?? known.token
  if (!token) {
    const variable = isOperator ? 'SENDWRIGHT_OPERATOR_TOKEN' : 'SENDWRIGHT_TOKEN'
    throw new CommandFailure(`No API key: give --token, set ${variable}, or run where DATA_DIR holds first-run.json`)
  }
  const base = options.url ?? known.url ?? (isOperator ? OPERATOR_URL_DEFAULT : URL_DEFAULT)
  const ask = async (method: string, path: string, rest: RequestInit = {}) => {
    // Without keep-alive the command ends as soon as its work does.
    const headers = { authorization: `Bearer ${token}`, connection: 'close', ...rest.headers }
    return await answerOf(base, new URL(base.replace(/\/+$/, '') + path), { ...rest, method, headers })
  }
  return {
    async open(path, signal) {
      const url = new URL(base.replace(/\/+$/, '') + path)
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal })
      if (response.ok && response.body !== null) return response.body
      const body = parseJson(await response.text())
      throw new CommandFailure(refusalText(response.status, (body ?? {}) as Partial<ErrorBody>), body)
    },
    get: async <Answer>(path: string) => (await ask('GET', path)) as Answer,
    post: async <Answer>(path: string, body?: object, headers: Record<string, string> = {}) => {
      if (body === undefined) return (await ask('POST', path, { headers })) as Answer
      const typed = { 'content-type': 'application/json', ...headers }
      return (await ask('POST', path, { headers: typed, body: JSON.stringify(body) })) as Answer
    },
  }
}

async function answerOf(base: string, url: URL, request: RequestInit): Promise<unknown> {
  const exchange = async () => {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    return { status: response.status, isOk: response.ok, text: await response.text() }
  }
  const { status, isOk, text } = await exchange().catch((error: Error) => {
    const cause = error.cause as NodeJS.ErrnoException | undefined
    throw new CommandFailure(`No answer from ${base}: ${cause?.code ?? cause?.message ?? error.message}`)
  })
  const body = parseJson(text)
  if (isOk && body !== undefined) return body
  if (body === undefined) throw new CommandFailure(`Answer ${status}: ${text.slice(0, 200)}`)
  throw new CommandFailure(refusalText(status, body as Partial<ErrorBody>), body)
}

function refusalText(status: number, { error, message, issues }: Partial<ErrorBody>): string {
  const lines = ((issues ?? []) as Issue[]).map((issue) => `  ${issue.path || 'body'}: ${issue.message}`)
  return [`Refused with ${status} ${error}: ${message}`, ...lines].join('\n')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // Proxies, and the edge's own 429 and 413, answer in plain text.
  }
}

function readFirstRun(dataDir: string): FirstRun | null {
  const path = join(dataDir, 'first-run.json')
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as FirstRun) : null
}

/** The server that commands speak of when none is named: the test server of first-run.json. */
export function firstServerId(): string | null {
  return readFirstRun(readClientSettings().dataDir)?.testServer.serverId ?? null
}
