/**
 * procfile - `npm run cluster`: runs lines of the Procfile side by side, each with its name before what it says.
 *
 * `npm run cluster -- http=1 actors=3` says how many of each; without that it is
 * `redis=1 http=1 actors=2 mx=1 submission=1`. Of `actors` there may be many, of the others one. A process that ends by
 * itself is started again after a second. SIGTERM or Ctrl-C ends all of them, Redis last; a second one, or 15 seconds,
 * ends them at once. Without SECRET_KEY it is DATA_DIR/secret-key, which is made where there is no store yet.
 *
 * Process n of a line gets PORT = 8091 + n, counted over all of them. No manager of processes that npm has ends Redis
 * after those that need it.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

// Whatever is made here is its owner's alone.
process.umask(0o077)

const ROOT = dirname(fileURLToPath(import.meta.url))
const DEFAULT = ['redis=1', 'http=1', 'actors=2', 'mx=1', 'submission=1']
const COUNT_MAX = 32
/** Only of this line each process has a port of its own. */
const MANY = 'actors'
/** Ended last: the others need them. */
const STORES = ['redis', 'nodes']
const PORT_FIRST = 8091
const AGAIN_MS = 1_000
const STOP_MS_MAX = 15_000
/** Ctrl-C comes twice under npm, from the terminal and from npm; who means it presses again after this. */
const REPEAT_MS_MAX = 500
const COLOURS = [36, 33, 32, 35, 34, 31]

const lines = new Map(
  readFileSync(join(ROOT, 'Procfile'), 'utf8')
    .split('\n')
    .map((line) => /^(\w+):\s+(.+)$/.exec(line)?.slice(1) ?? [])
    .filter(([name]) => name !== undefined),
)
const wanted = (process.argv.length > 2 ? process.argv.slice(2) : DEFAULT).map((text) => {
  const [, name, count = '1'] = /^(\w+)(?:=(\d+))?$/.exec(text) ?? []
  if (!lines.has(name) || Number(count) > COUNT_MAX)
    fail(`Not a Procfile line with a count: ${text} (the lines are ${[...lines.keys()].join(', ')})`)
  if (name !== MANY && Number(count) > 1) fail(`At most one ${name} is possible: a second one would need the same port`)
  return { name, count: Number(count) }
})

if (!process.env.SECRET_KEY) makeSecret(resolve(ROOT, process.env.DATA_DIR || './data'))
const firstPort = Number(process.env.PORT ?? PORT_FIRST)
const running = []
let isStopping = false
let askedAtMs = Number.NEGATIVE_INFINITY

for (const { name, count } of wanted)
  for (let n = 1; n <= count; n += 1) {
    const place = running.length
    const one = { name, label: count > 1 ? `${name}.${n}` : name, colour: COLOURS[place % COLOURS.length], child: null }
    running.push({ ...one, env: { ...process.env, PORT: String(firstPort + place) } })
  }
const width = Math.max(...running.map(({ label }) => label.length))
for (const one of running) run(one)
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

function run(one) {
  // A group of its own: Ctrl-C in the terminal must not reach Redis before the others have ended.
  const child = spawn('/bin/sh', ['-c', lines.get(one.name)], {
    cwd: ROOT,
    env: one.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  one.child = child
  for (const output of [child.stdout, child.stderr])
    createInterface({ input: output }).on('line', (line) => say(one, line))
  one.ended = new Promise((resolve) => {
    child.once('close', (code, signal) => {
      one.child = null
      say(one, `ended (${signal ?? code})`)
      resolve()
      if (!isStopping) setTimeout(() => isStopping || run(one), AGAIN_MS)
    })
  })
}

async function stop() {
  if (performance.now() - askedAtMs < REPEAT_MS_MAX) return
  askedAtMs = performance.now()
  if (isStopping) return endAll('SIGKILL')
  isStopping = true
  const late = setTimeout(() => endAll('SIGKILL'), STOP_MS_MAX)
  const isStore = ({ name }) => STORES.includes(name)
  await end(running.filter((one) => !isStore(one)))
  await end(running.filter(isStore))
  clearTimeout(late)
  process.exit(0)
}

async function end(some) {
  for (const { child } of some) if (child !== null) signal(child, 'SIGTERM')
  await Promise.all(some.map(({ child, ended }) => child && ended))
}

function endAll(name) {
  for (const { child } of running) if (child !== null) signal(child, name)
}

/** To the whole group; one that has just ended needs none. */
function signal(child, name) {
  try {
    process.kill(-child.pid, name)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

function say({ label, colour }, line) {
  const name = label.padEnd(width)
  process.stdout.write(process.stdout.isTTY ? `\x1b[${colour}m${name}\x1b[0m  ${line}\n` : `${name}  ${line}\n`)
}

/**
 * The secret of a store that is still to be made; whoever comes second leaves the first one's. One that is lost is not
 * made anew.
 */
function makeSecret(dataDir) {
  const known = ['secret-key', 'cluster-secret', 'installation', 'appendonlydir']
  if (known.some((name) => existsSync(join(dataDir, name)))) return
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  try {
    writeFileSync(join(dataDir, 'secret-key'), `${randomBytes(32).toString('base64url')}\n`, {
      mode: 0o600,
      flag: 'wx',
    })
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
}

function fail(sentence) {
  console.error(sentence)
  process.exit(2)
}
