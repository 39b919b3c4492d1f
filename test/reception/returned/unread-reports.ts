/** unread-reports - unread mail is a file for a week, within bounds; no erasure leaves one from before. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeUnreadReports } from '../../../src/reception/returned/unread-reports.ts'

const DAY_MS = 86_400_000
const START_MS = 1_790_000_000_000

function open(dataDir: string) {
  const clock = { nowMs: START_MS, erasedMs: 0 as number | null }
  const logged: object[] = []
  const log = (facts: object, text: string) => void logged.push({ ...facts, text })
  const make = () =>
    makeUnreadReports({
      dataDir,
      clientHmac: (client) => `${client}________`,
      nowMs: () => clock.nowMs,
      lastErasedMs: async () => clock.erasedMs,
      log: { error: log, debug: log },
    })
  const folder = join(dataDir, 'unread-reports')
  return { reports: make(), make, clock, logged, dataDir, folder, names: () => readdirSync(folder).sort() }
}

t.test('unread-reports: a mail is kept whole, for its owner alone, and is logged [bounce.unread]', async (t) => {
  const { reports, folder, names, logged } = open(t.testdir())
  const isKept = await reports.keep(Buffer.from('Subject: a\r\n\r\nfor ada@example.net'), 'a')
  await reports.close()
  const [name = ''] = names()
  t.equal(readFileSync(join(folder, name), 'utf8'), 'Subject: a\r\n\r\nfor ada@example.net')
  t.equal(statSync(join(folder, name)).mode & 0o777, 0o600)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.equal(isKept, true)
  t.equal(logged.length, 1)
  t.notMatch(JSON.stringify(logged), /@/)
})

t.test('unread-reports: a flooding client displaces only its own mail [bounce.unread]', async (t) => {
  const { reports, clock, names } = open(t.testdir())
  await reports.keep(Buffer.from('b'), 'b')
  for (let at = 0; at < 150; at += 1) {
    clock.nowMs += 1
    await reports.keep(Buffer.from('a'), 'a')
  }
  await reports.close()
  t.equal(names().length, 100)
  t.equal(names().filter((name) => name.includes('-b_______-')).length, 1)
  t.match(names().at(-1), String(clock.nowMs), 'the newest stays')
})

t.test('unread-reports: a week, and every erasure, removes earlier ones [bounce.unread]', async (t) => {
  const { reports, make, clock, names, folder } = open(t.testdir())
  await reports.keep(Buffer.from('a'), 'a')
  writeFileSync(join(folder, 'note.txt'), 'of the operator')
  await reports.close()
  const left = async (nowMs: number, erasedMs: number | null) => {
    Object.assign(clock, { nowMs, erasedMs })
    await make().close()
    return names().length
  }
  t.equal(await left(START_MS + 6 * DAY_MS, START_MS - 1), 2, 'an erasure before it came')
  t.equal(await left(START_MS + 6 * DAY_MS, null), 2, 'the store is away')
  t.equal(await left(START_MS + 7 * DAY_MS, 0), 1, 'a week')
  await makeKept()
  t.equal(await left(clock.nowMs + 1, clock.nowMs), 1, 'an erasure after it came')

  async function makeKept() {
    const again = make()
    await again.keep(Buffer.from('b'), 'b')
    await again.close()
    t.equal(names().length, 2)
  }
})

t.test('unread-reports: a folder that cannot be used is logged, and harms nothing', async (t) => {
  const dataDir = t.testdir({ 'unread-reports': 'a file' })
  const { reports, logged } = open(dataDir)
  t.equal(await reports.keep(Buffer.from('a'), 'a'), false)
  await reports.close()
  t.match(logged.at(-1), { text: /cannot be used/ })
})
