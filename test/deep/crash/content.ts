/**
 * The process is ended with SIGKILL at each step of a write to the content store, of the commit that names it and of
 * its removal. Everything that was answered is delivered with its attachments, once; then the clock moves over all
 * ages, and nothing is left on the disk.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contentFolder } from '../../../src/content/files.ts'
import { sendAll } from '../../support/clients/ledger.ts'
import { SETTLED, settle } from '../../support/clients/settle.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { CONTENT_POINTS } from '../../support/store/crash-content.ts'
import type { CrashPoint } from '../../support/store/crash-shard.ts'

const MESSAGES = 24
const WAIT_MS = 30_000
const PAST_ALL_AGES_DAYS = 40
/** A test server keeps attachments for seven days, and then their objects are swept. */
const PAST_ATTACHMENTS_DAYS = 9
/** Steps of the turn at which large content gets or loses its name. */
const TURN_POINTS: readonly CrashPoint[] = ['decided', 'committed, reply lost', 'outcome not committed']

t.jobs = 1
const clock = MOVED_CLOCK_SKIP === false ? makeMovedClock() : null
const make = () => setScene({ CONTENT_STORE: 'file' })
const { redis, settings, firstRun, end } = await (clock === null ? make() : clock.around(make))
const { testServer, account } = firstRun
const root = contentFolder(settings.DATA_DIR as string)
const content = randomBytes(90_000).toString('base64')
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  await end()
})

/** Files of the store, unfinished ones among them. */
function files(): string[] {
  if (!existsSync(root)) return []
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }) as string[]
  return names.filter((name) => name !== '.id' && statSync(join(root, name), { throwIfNoEntry: false })?.isFile())
}

let sentBefore = 0
let orphans = 0

async function killedAt(dying: Promise<Host>, test: Test): Promise<void> {
  host = await dying
  const load = sendAll({
    port: Number(settings.HTTP_PORT),
    token: testServer.token,
    clients: 4,
    recipient: (n) => `person${n % 10}@example.com`,
    fields: () => ({ attachments: [{ name: 'a.bin', contentType: 'application/octet-stream', content }] }),
    goOn: (sent) => sent < MESSAGES,
  })
  await host.exited
  const left = files()
  host = await startHost(settings)
  const ledger = await load
  const { serverId } = testServer
  const found = await settle(redis.socketPath, { serverId, accountId: account.accountId, ledger })
  test.match(found, { ...SETTLED, told: MESSAGES })
  test.equal(found.logged, sentBefore + MESSAGES, 'every message is in the log once, and was delivered with its files')
  sentBefore = found.logged
  await until(() => files().every((name) => !name.startsWith('tmp/')), WAIT_MS)
  test.ok(left.length > 0, 'the killed process had some under way')
  // A test server keeps the attachments of every message.
  orphans = files().length - sentBefore
  test.ok(orphans >= 0 && orphans <= 4 * 2 * (sentBefore / MESSAGES), `${orphans} files without a name`)
  await host.kill('SIGTERM')
}

for (const point of CONTENT_POINTS.filter((one) => one !== 'removed')) {
  t.test(`crash: killed when content is ${point}, nothing answered is lost`, async (t) => {
    await killedAt(startHost({ ...settings, CONTENT_POINT: point }), t)
  })
}

for (const point of TURN_POINTS) {
  t.test(`crash: killed when ${point}, with large content, nothing answered is lost`, async (t) => {
    await killedAt(startHost(settings, { point }), t)
  })
}

t.test('crash: past all ages no file of the killed processes is left', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  t.ok(orphans > 0, 'there are orphans to sweep')
  clock?.moveTo(PAST_ATTACHMENTS_DAYS)
  host = await startHost({ ...settings, CONTENT_POINT: 'removed' })
  await host.exited
  t.ok(files().length > 0, 'killed in the middle of the sweep')
  clock?.moveTo(PAST_ALL_AGES_DAYS)
  host = await startHost(settings)
  await until(() => files().length === 0, WAIT_MS)
  t.same(files(), [])
  await host.kill('SIGTERM')
})
