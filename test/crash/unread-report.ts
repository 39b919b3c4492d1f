/**
 * The process is ended with SIGKILL while it keeps reports that it could not read: each that it has acknowledged is on
 * the disk, whole. The sender of any other got no 250 and sends it again.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { ROOT } from '../support/machine/root.ts'

const KILLS = 5
const REPORT_BYTES = 200_000
const MODULE = pathToFileURL(join(ROOT, 'build/src/reception/returned/unread-reports.js')).href

/** Keeps one report after the other, each of one letter, and prints the letter of each that is acknowledged. */
const KEEPER = `
import { makeUnreadReports } from ${JSON.stringify(MODULE)}
const log = { info() {}, warn() {}, error() {} }
const lastErasedMs = async () => 0
const reports = makeUnreadReports({ dataDir: process.argv[1], clientHmac: () => 'client__', nowMs: Date.now, lastErasedMs, log })
for (let n = 0; n < 26; n += 1) {
  const letter = String.fromCharCode(97 + n)
  if (await reports.keep(Buffer.alloc(${REPORT_BYTES}, letter), 'client')) process.stdout.write(letter)
}
setInterval(() => undefined, 1_000)
`

t.test('crash: a report that was acknowledged as unread is on the disk, whole [bounce.unread]', async (t) => {
  for (let kill = 0; kill < KILLS; kill += 1) {
    const dataDir = t.testdir()
    const child = spawn(process.execPath, ['--input-type=module', '-e', KEEPER, dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let acknowledged = ''
    child.stdout.on('data', (piece: Buffer) => {
      acknowledged += piece.toString()
    })
    await once(child.stdout, 'data')
    await delay(kill * 10)
    child.kill('SIGKILL')
    await once(child, 'close')
    const folder = join(dataDir, 'unread-reports')
    const whole = readdirSync(folder).flatMap((name) => {
      const text = readFileSync(join(folder, name), 'latin1')
      return text.length === REPORT_BYTES ? [text.charAt(0)] : []
    })
    for (const letter of acknowledged) t.ok(whole.includes(letter), letter)
  }
})
