/**
 * client - asks the API for a command: finds the address and the key, and prints a refusal in words.
 *
 * The key: `--token`; with `--live` the live server's of first-run.json; otherwise SENDWRIGHT_TOKEN if it is of the
 * kind that the command needs, otherwise the fitting one of first-run.json. The address: `--url`, otherwise HTTP_HOST
 * and HTTP_PORT, otherwise BASE_URL, otherwise first-run.json's, otherwise the default port. Operator commands use the
 * operator listener: SENDWRIGHT_OPERATOR_TOKEN, OPERATOR_HOST and OPERATOR_PORT.
 */
import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorBody, Issue } from '../../../schemas/error.ts'
import { readClientSettings } from '../../process/config.ts'
import { CommandFailure } from './failure.ts'

/** Longer than the service ever waits before it answers or closes. */
const ANSWER_MS_MAX = 40_000
const PAGE = 100
/** 100,000 objects, more than anyone reads in a terminal. */
const PAGES_MAX = 1000
const URL_DEFAULT = 'http://127.0.0.1:8080'
const DOMAIN_HINT =
  'sendwright domain add <domain> prints the records to create and sendwright domain verify <domain> looks them up; with --test-only, test servers can use it at once'
const OPERATOR_URL_DEFAULT = 'http://127.0.0.1:8081'

/** Options that every command of the API takes. */
export interface ClientOptions {
  url?: string
  token?: string
  live?: boolean
  json?: boolean
}

/** The owner of a command's key. */
export type KeyOwner = 'account' | 'server' | 'operator'

/** The prefix of each kind of key, and its name. */
const KINDS: Readonly<Record<KeyOwner, { readonly prefix: RegExp; readonly name: string }>> = {
  account: { prefix: /^ak_/, name: 'an account key (ak_)' },
  server: { prefix: /^sk_/, name: 'a server key (sk_)' },
  operator: { prefix: /^ok_/, name: 'an operator key (ok_)' },
}
const OWNERS = ['account', 'server', 'operator'] as const satisfies readonly KeyOwner[]

/** The part of first-run.json that commands use. */
interface FirstRun {
  baseUrl: string
  operatorUrl: string
  operatorToken: string
  account: { token: string }
  liveServer: { token: string }
  testServer: { token: string }
}

export interface Client {
  get<Answer>(path: string): Promise<Answer>
  post<Answer>(path: string, body?: object, headers?: Record<string, string>): Promise<Answer>
  put<Answer>(path: string, body: object): Promise<Answer>
  patch<Answer>(path: string, body: object): Promise<Answer>
  delete(path: string, body?: object): Promise<void>
  /** A secret derived from a key, the same each time. Takes its purpose. */
  derive(purpose: string): Buffer
  /**
   * A streamed answer, to a POST if there is a body. Throws CommandFailure if it is refused, Error if there is no
   * answer.
   */
  open(
    path: string,
    signal: AbortSignal,
    sent?: { readonly headers?: Record<string, string>; readonly body?: object },
  ): Promise<ReadableStream<Uint8Array>>
}

/**
 * Makes the client of one command.
 * @param owner whose key it needs
 * @throws CommandFailure if no key is found, or the given one is of another kind
 */
export function makeClient(options: ClientOptions, owner: KeyOwner): Client {
  const settings = readClientSettings()
  const firstRun = readFirstRun(settings.dataDirs)
  const isOperator = owner === 'operator'
  const named = isOperator ? settings.operatorToken : settings.token
  const token = chooseKey({ given: options.token, named, isLive: options.live === true }, owner, firstRun)
  const base =
    options.url ??
    (isOperator
      ? (settings.operatorUrl ?? firstRun?.operatorUrl ?? OPERATOR_URL_DEFAULT)
      : (settings.url ?? firstRun?.baseUrl ?? URL_DEFAULT))
  const urlOf = (path: string) => new URL(base.replace(/\/+$/, '') + path)
  const authorization = `Bearer ${token}`
  const ask = async (method: string, path: string, rest: RequestInit = {}) => {
    // Without keep-alive the command ends as soon as its work does.
    const headers = { authorization, connection: 'close', ...rest.headers }
    return await exchange(base, urlOf(path), { ...rest, method, headers })
  }
  const say = (method: string, path: string, body: object, headers: Record<string, string> = {}) =>
    ask(method, path, { headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })
  return {
    async open(path, signal, { headers = {}, body: sent } = {}) {
      const post = sent === undefined ? {} : { method: 'POST', body: JSON.stringify(sent) }
      const type = sent === undefined ? {} : { 'content-type': 'application/json' }
      const response = await fetch(urlOf(path), { headers: { authorization, ...type, ...headers }, signal, ...post })
      if (response.ok && response.body !== null) return response.body
      const body = parseJson(await response.text())
      throw new CommandFailure(refusalText(response.status, (body ?? {}) as Partial<ErrorBody>), body)
    },
    get: async <Answer>(path: string) => (await ask('GET', path)) as Answer,
    post: async <Answer>(path: string, body?: object, headers: Record<string, string> = {}) =>
      (await (body === undefined ? ask('POST', path, { headers }) : say('POST', path, body, headers))) as Answer,
    put: async <Answer>(path: string, body: object) => (await say('PUT', path, body)) as Answer,
    patch: async <Answer>(path: string, body: object) => (await say('PATCH', path, body)) as Answer,
    delete: async (path: string, body?: object) =>
      void (await (body === undefined ? ask('DELETE', path) : say('DELETE', path, body))),
    derive: (purpose) => createHmac('sha256', token).update(purpose).digest(),
  }
}

interface Choice {
  /** Of `--token`. */
  readonly given: string | undefined
  /** Value from the environment. */
  readonly named: string | null
  readonly isLive: boolean
}

function chooseKey({ given, named, isLive }: Choice, owner: KeyOwner, firstRun: FirstRun | null): string {
  const { name } = KINDS[owner]
  if (given !== undefined) {
    const kind = recognizeKey(given)
    if (kind !== null && kind !== owner)
      throw new CommandFailure(`This command needs ${name}: the key given with --token is ${KINDS[kind].name}`)
    return given
  }
  const kept = firstRun === null ? undefined : keyOf(firstRun, owner, isLive)
  const kind = named === null ? null : recognizeKey(named)
  const fits = named !== null && (kind === null || kind === owner)
  const token = owner === 'server' && isLive ? kept : fits ? named : kept
  if (token !== undefined) return token
  const variable = owner === 'operator' ? 'SENDWRIGHT_OPERATOR_TOKEN' : 'SENDWRIGHT_TOKEN'
  const wrong = named === null ? '' : `; ${variable} is ${KINDS[kind ?? owner].name}`
  throw new CommandFailure(
    `No API key: this command needs ${name}. Give --token, set ${variable}, or run it where DATA_DIR contains first-run.json${wrong}`,
  )
}

/** The kind of a key by its prefix; null if unknown. */
function recognizeKey(token: string): KeyOwner | null {
  return OWNERS.find((owner) => KINDS[owner].prefix.test(token)) ?? null
}

function keyOf({ account, liveServer, testServer, operatorToken }: FirstRun, owner: KeyOwner, isLive: boolean): string {
  if (owner === 'operator') return operatorToken
  if (owner === 'account') return account.token
  return isLive ? liveServer.token : testServer.token
}

async function exchange(base: string, url: URL, request: RequestInit): Promise<unknown> {
  const exchange = async () => {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    return { status: response.status, isOk: response.ok, text: await response.text() }
  }
  const { status, isOk, text } = await exchange().catch((error: Error) => {
    const cause = error.cause as NodeJS.ErrnoException | undefined
    const hint = cause?.code === 'ECONNREFUSED' ? ' (is the service running? Start it with `sendwright start`)' : ''
    throw new CommandFailure(`No answer from ${base}: ${cause?.code ?? cause?.message ?? error.message}${hint}`)
  })
  if (status === 204) return null
  const body = parseJson(text)
  if (isOk && body !== undefined) return body
  if (body === undefined) throw new CommandFailure(`Unexpected answer ${status}: ${text.slice(0, 200)}`)
  throw new CommandFailure(refusalText(status, body as Partial<ErrorBody>), body)
}

/** A refusal with every field that it has. */
function refusalText(status: number, { error, message, issues, ...rest }: Partial<ErrorBody>): string {
  const wrong = ((issues ?? []) as Issue[]).map((issue) => `  ${issue.path || 'body'}: ${issue.message}`)
  const fields = Object.entries(rest).map(
    ([name, value]) => `  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const hint = error === 'domain_not_verified' ? [DOMAIN_HINT.replaceAll('<domain>', String(rest.domain))] : []
  return [`Refused with ${status} ${error}: ${message}`, ...wrong, ...fields, ...hint].join('\n')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // Proxies, and the edge's own 429 and 413, answer in plain text.
  }
}

function readFirstRun(dataDirs: readonly string[]): FirstRun | null {
  const path = dataDirs.map((dir) => join(dir, 'first-run.json')).find((place) => existsSync(place))
  if (path === undefined) return null
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as FirstRun
  } catch (error) {
    throw new CommandFailure(`Cannot read ${path}: ${(error as Error).message}`)
  }
}

/** All objects of a list. Takes its path without a query, and the name of the list in the answer. */
export async function readAll<Item>(client: Client, path: string, name: string): Promise<Item[]> {
  const items: Item[] = []
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await client.get<{ next: string | null } & Record<string, unknown>>(`${path}?limit=${PAGE}${after}`)
    items.push(...(answer[name] as Item[]))
    if (answer.next === null) break
    after = `&after=${answer.next}`
  }
  return items
}
