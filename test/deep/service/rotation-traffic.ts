/**
 * rotation-traffic - while the secret is rotated, searches find, links of mail sent before unsubscribe, and an erasure
 * ends; a backup of before opens with the former secret only, one of after with the new one.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { readAofFiles } from '../../../cluster/embedded/aof-files.ts'
import { makeCopy } from '../../../src/store/backup/copy.ts'
import { oneNode } from '../../../src/store/nodes.ts'
import { until } from '../../support/machine/until.ts'
import { startDelivery } from '../../support/service/delivery.ts'
import { makeRotationRig } from '../../support/service/rotation-rig.ts'
import { secretInFile } from '../../support/service/secret-folder.ts'

const WAIT_MS = 60_000
const READERS = 12
const DOMAIN = 'list.example'
const person = (n: number) => `reader-${n}@${DOMAIN}`

const delivery = await startDelivery({ ...secretInFile(), CONTENT_STORE: 'file' }, { settlingMs: 3_000 })
const { service } = delivery
const redis = new Redis(service.redis.socketPath)
const folder = mkdtempSync(join(tmpdir(), 'sendwright-backups-'))
t.teardown(async () => {
  redis.disconnect()
  await delivery.stop()
  rmSync(folder, { recursive: true, force: true })
})
const { account, liveServer } = service.firstRun
const { token } = liveServer
const rig = makeRotationRig(service, { redises: () => [redis], common: async () => redis })

async function call(what: string, body?: object, of = token) {
  const answer = await service.call(what, { token: of, ...(body !== undefined && { body }) })
  if (answer.status >= 300) throw new Error(`${what}: ${answer.text}`)
  return answer.json
}

/** The ring in a backup of the store: its files hold the last one that was written. */
async function ringOfBackup(name: string): Promise<string> {
  const path = join(folder, name)
  await makeCopy(
    oneNode(() => redis),
    path,
  )
  const files = readAofFiles(path)
  if (files === null) throw new Error('No files')
  const present = (await rig.ring()) ?? ''
  const texts = [...files.sizes.keys()].map((file) => readFileSync(join(path, 'appendonlydir', file), 'latin1'))
  if (!texts.some((text) => text.includes(present))) throw new Error('The backup has another ring')
  return present
}

t.test('rotation: searches, links, erasures and backups [secret.rotate]', async (t) => {
  const mx = await delivery.destination(DOMAIN)
  const { streamId } = await call('POST /v1/streams', { kind: 'broadcast', name: 'News' })
  const ids: string[] = []
  for (let n = 0; n < READERS; n += 1) ids.push(await delivery.send([person(n)], { subject: 'News', streamId }))
  const mails = await until(() => {
    const all = mx.sessions.flatMap(({ messages }) => messages)
    return all.length >= READERS ? all : null
  }, WAIT_MS)
  const links = mails.map((mail) => /List-Unsubscribe: <(http\S+\/u\/\S+)>/.exec(mail.replace(/\r\n\s+/g, ' '))?.[1])
  t.notOk(links.includes(undefined))
  const [formerSecret, formerRing] = [rig.secret(), await ringOfBackup('before')]

  let round = 0
  const seen: number[] = []
  const erased = { id: '' }
  await rig.rotate(t, async (phase) => {
    const n = round % READERS
    round += 1
    const found = await call('POST /v1/messages/search', { recipient: person(n), limit: 10 })
    if (n !== 0) seen.push(found.messages.length)
    const local = new URL(links[n] ?? '')
    const at = `http://127.0.0.1:${service.config.httpPort}${local.pathname}${local.search}`
    const page = await fetch(at, { headers: { connection: 'close' } })
    if (page.status !== 200) t.equal(page.status, 200, `the page of link ${n} in ${phase}`)
    const headers = { 'content-type': 'application/x-www-form-urlencoded', connection: 'close' }
    const clicked = await fetch(at, { method: 'POST', headers, body: 'List-Unsubscribe=One-Click' })
    if (clicked.status !== 200) t.equal(clicked.status, 200, `link ${n} in ${phase}`)
    if (phase === 'walking' && erased.id === '')
      erased.id = (await call('POST /v1/erasures', { address: person(0) }, account.token)).erasureId
  })
  t.ok(seen.length > 3 && seen.every((count) => count === 1), `${seen.length} searches found the message`)
  const erasure = await until(async () => {
    const found = await call(`GET /v1/erasures/${erased.id}`, undefined, account.token)
    return found.status === 'done' ? found : null
  }, WAIT_MS)
  t.ok(erasure.messages >= 1)

  const [secret, ring] = [rig.secret(), await ringOfBackup('after')]
  t.not(secret, formerSecret)
  t.ok(rig.sealingOf(formerRing, formerSecret), 'the backup of before opens with the former secret')
  t.equal(rig.sealingOf(formerRing, secret), null, 'and not with the new one')
  t.ok(rig.sealingOf(ring, secret))
  t.equal(rig.sealingOf(ring, formerSecret), null)
})
