/**
 * damage - every file of a stopped installation, damaged in each way: the start is refused with a sentence, or what is
 * damaged answers 503 or is logged; no message is missing or changed without either
 *
 * Ways: one changed bit, the end cut off, a block of zeros, no file. Each is tried on a fresh copy of the directory.
 */
import { randomBytes } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { until } from '../support/machine/until.ts'
import { endOf, Scene, type Started } from '../support/mistakes/scene.ts'

const WAIT_MS = 60_000
const SMALL = 12
const LARGE = 3
const ZEROS = 512
const LARGE_CHARS = 150_000
/** Logs and locks of programs, which no start reads. */
const UNREAD = /^(redis\.(sock|pid|log|log\.1|lock.*)|tls-.*|last-backup)$/

export const DAMAGES = ['bit', 'cut', 'zeros', 'missing'] as const
export type Damage = (typeof DAMAGES)[number]
/** `refused`: with a sentence; `noticed`: an answer or the log names it; `whole`: nothing was lost. */
export type Result = 'refused' | 'noticed' | 'whole' | 'SILENT'

export interface DamageRow {
  readonly file: string
  readonly damage: Damage
  readonly result: Result
  /** The sentence, or what was wrong. */
  readonly text: string
}

interface Sent {
  readonly id: string
  readonly text: string
}

/** Damages each file in each way. */
export async function runDamage({
  random,
  say,
}: {
  readonly random: () => number
  readonly say: (line: string) => void
}): Promise<DamageRow[]> {
  const clear: (() => unknown)[] = []
  const owner = { teardown: (act: () => unknown) => void clear.unshift(act) }
  try {
    const scene = await Scene.make(owner, { CONTENT_STORE: 'file' })
    const sent = await fill(scene)
    const whole = join(scene.top, 'whole')
    cpSync(scene.dataDir, whole, {
      recursive: true,
      filter: (path) => !/^redis\.(sock|lock\.\d+)$/.test(basename(path)),
    })
    const rows: DamageRow[] = []
    for (const file of filesOf(whole))
      for (const damage of DAMAGES) {
        rmSync(scene.dataDir, { recursive: true, force: true })
        cpSync(whole, scene.dataDir, { recursive: true })
        act(join(scene.dataDir, file), damage, random)
        const row = { file: nameOf(file), damage, ...(await judge(scene, sent)) }
        say(`${row.file.padEnd(36)} ${damage.padEnd(8)} ${row.result.padEnd(8)} ${row.text}`)
        rows.push(row)
      }
    return rows
  } finally {
    for (const act of clear) await act()
  }
}

/** What was silent, or is not in the table that the documents have. */
export function failuresOfDamage(rows: readonly DamageRow[]): string[] {
  return rows
    .filter(({ result }) => result === 'SILENT')
    .map(({ file, damage, text }) => `${damage} in ${file} was silent: ${text}`)
}

/** An installation with small and large messages before and after a rewrite, stopped. */
async function fill(scene: Scene): Promise<Sent[]> {
  const service = await scene.start()
  const sent: Sent[] = []
  const send = async (name: string, text: string): Promise<void> => {
    const to = [`${name}@simulator.test`]
    const body = { from: 'shop@simulator.test', to, subject: `Subject of ${name}`, text }
    const { json } = await ask(scene, '/v1/email', body)
    sent.push({ id: json.messageId as string, text })
  }
  for (let n = 0; n < SMALL; n += 1) await send(`early-${n}`, `Text of early ${n}`)
  // Text that does not shrink, so that it goes to the content store.
  for (let n = 0; n < LARGE; n += 1) await send(`large-${n}`, randomBytes(LARGE_CHARS).toString('base64'))
  const redis = scene.store()
  await redis.bgrewriteaof()
  await until(async () => /aof_rewrite_in_progress:0/.test(await redis.info('persistence')), WAIT_MS)
  redis.disconnect()
  for (let n = 0; n < SMALL; n += 1) await send(`late-${n}`, `Text of late ${n}`)
  if ((await service.kill('SIGTERM')) !== 0) throw new Error(service.said())
  return sent
}

/** Files that a start reads, one of each kind. */
function filesOf(top: string): string[] {
  const kinds = new Map<string, string>()
  for (const entry of readdirSync(top, { recursive: true, withFileTypes: true })) {
    const file = relative(top, join(entry.parentPath, entry.name))
    if (!entry.isFile() || UNREAD.test(entry.name) || statSync(join(top, file)).size === 0) continue
    if (!kinds.has(nameOf(file))) kinds.set(nameOf(file), file)
  }
  return [...kinds.values()].sort()
}

function nameOf(file: string): string {
  return file.replace(/^content\/.*\.body$/, 'content/….body').replace(/\.\d+\.(incr|base)/, '.….$1')
}

function act(path: string, damage: Damage, random: () => number): void {
  if (damage === 'missing') {
    rmSync(path)
    return
  }
  const bytes = readFileSync(path)
  const at = Math.floor(random() * bytes.length)
  if (damage === 'bit') bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8))
  if (damage === 'zeros') bytes.fill(0, at, Math.min(bytes.length, at + ZEROS))
  writeFileSync(path, damage === 'cut' ? bytes.subarray(0, Math.floor(bytes.length * 0.6)) : bytes)
}

/** Starts the service, and reads every message. */
async function judge(scene: Scene, sent: readonly Sent[]): Promise<Pick<DamageRow, 'result' | 'text'>> {
  const service = await scene.start({ ready: false })
  try {
    await until(async () => !service.isRunning() || (await isReady(scene)), WAIT_MS)
    if (!service.isRunning()) return { result: 'refused', text: lastSentence(await ended(service)) }
    const wrong: string[] = []
    let noticed = 0
    for (const { id, text } of sent) {
      const { status, json } = await ask(scene, `/v1/messages/${id}`)
      if (status === 503) noticed += 1
      else if (status !== 200 || json.text !== text) wrong.push(`${status} ${json.error ?? 'other text'}`)
    }
    const logged = service.said().match(/"level":"(?:warn|error)".*/g)?.[0]
    if (wrong.length > 0 && logged === undefined) return { result: 'SILENT', text: `${wrong.length}: ${wrong[0]}` }
    if (noticed > 0) return { result: 'noticed', text: `${noticed} messages answer 503` }
    if (wrong.length > 0) return { result: 'noticed', text: String(logged).slice(0, 160) }
    return { result: 'whole', text: logged === undefined ? '' : logged.slice(0, 160) }
  } finally {
    await service.kill('SIGTERM')
    for (const pid of scene.redisProcesses()) process.kill(pid, 'SIGKILL')
    await until(() => scene.redisProcesses().length === 0, WAIT_MS)
  }
}

async function ended(service: Started): Promise<string> {
  await endOf(service)
  return service.said()
}

function lastSentence(said: string): string {
  const lines = said.trim().split('\n')
  return (lines.findLast((line) => /Cannot|Redis|damaged|not/.test(line)) ?? lines.at(-1) ?? '').slice(0, 200)
}

async function isReady({ settings }: Scene): Promise<boolean> {
  const url = `http://127.0.0.1:${settings.OPERATOR_PORT}/readyz`
  const answer = await fetch(url, { headers: { connection: 'close' } }).catch(() => null)
  await answer?.text().catch(() => '')
  return answer?.status === 200
}

let token = ''

/** A request with the key of the test server; a POST if it has a body. */
async function ask(
  scene: Scene,
  path: string,
  body?: object,
): Promise<{ status: number; json: Record<string, unknown> }> {
  if (body !== undefined) token = scene.firstRun.testServer.token
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' }
  const url = `http://127.0.0.1:${scene.settings.HTTP_PORT}${path}`
  const answer = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, json: JSON.parse(text) }
}
