/**
 * doors - kill -9 in the middle of batches through each door. With an Idempotency-Key the repeats and the log agree;
 * without one, every accepted message is in the log. `SEED=n` for other moments, `KILLS=n` for more of them.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { makeChance } from '../../simulation/prng.ts'
import { until } from '../../support/machine/until.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const KILLS = Number(process.env.KILLS ?? 3)
const SEED = Number(process.env.SEED ?? 1)
const KILL_MS_MAX = 400
const RETRY_MS = 100
const RETRIES_MAX = 300

const chance = makeChance(SEED)
const scene = await startScene()
let host: Host = scene.host
t.teardown(async () => {
  await host.kill('SIGKILL')
  await scene.end()
})
const { token } = scene.firstRun.testServer
const base = `http://127.0.0.1:${scene.settings.HTTP_PORT}`

/** One request of a door: its path, headers and body, and the ids in its answer. */
interface Door {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** In: the tag of its messages. */
  body(tag: string): string
  idsOf(json: never): string[]
}

const mail = (n: number) => `delivered+${n}@simulator.test`
const json = { 'content-type': 'application/json' }
const DOORS: Readonly<Record<string, Door>> = {
  resend: {
    path: '/emails/batch',
    headers: { ...json, authorization: `Bearer ${token}` },
    body: (tag) =>
      JSON.stringify(
        Array.from({ length: 100 }, (_, n) => ({
          from: 'a@simulator.test',
          to: mail(n),
          subject: 'Hello',
          text: 'Hello',
          tags: [{ name: 'batch', value: tag }],
        })),
      ),
    idsOf: ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id),
  },
  postmark: {
    path: '/email/batch',
    headers: { ...json, 'x-postmark-server-token': token },
    body: (tag) =>
      JSON.stringify(
        Array.from({ length: 500 }, (_, n) => ({
          From: 'a@simulator.test',
          To: mail(n),
          Subject: 'Hello',
          TextBody: 'Hello',
          Metadata: { batch: tag },
        })),
      ),
    // Messages of chunks that did not pass have no id.
    idsOf: (sent: { MessageID?: string }[]) => sent.flatMap(({ MessageID }) => MessageID ?? []),
  },
  mailgun: {
    path: '/v3/simulator.test/messages',
    headers: { authorization: `Basic ${Buffer.from(`api:${token}`).toString('base64')}` },
    body: (tag) =>
      new URLSearchParams({
        from: 'a@simulator.test',
        to: mail(0),
        subject: 'Hello',
        text: 'Hello',
        'v:batch': tag,
      }).toString(),
    idsOf: ({ id }: { id: string }) => [id.slice(1, 37)],
  },
}

/** Posts a request once. Returns the ids of a 200, or null without an answer that accepts. */
async function post({ path, headers, body, idsOf }: Door, tag: string, key?: string): Promise<string[] | null> {
  const form = path.startsWith('/v3/') ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  const keyed = key === undefined ? {} : { 'idempotency-key': key }
  try {
    const init = { method: 'POST', headers: { connection: 'close', ...headers, ...form, ...keyed }, body: body(tag) }
    const response = await fetch(base + path, init)
    const answered = (await response.json()) as never
    return response.status === 200 ? idsOf(answered) : null
  } catch {
    return null
  }
}

/** Ids of the messages in the log with that metadata. */
async function logged(tag: string): Promise<Set<string>> {
  const ids = new Set<string>()
  let after: string | null = null
  for (let tries = 0; tries < RETRIES_MAX; tries += 1) {
    const body: object = { metadata: { batch: tag }, limit: 100, ...(after !== null && { after }) }
    const headers = { ...json, authorization: `Bearer ${token}`, connection: 'close' }
    const response = await fetch(`${base}/v1/messages/search`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (response.status !== 200) {
      await pause(RETRY_MS)
      continue
    }
    const page = (await response.json()) as { messages: { messageId: string }[]; next: string | null }
    for (const { messageId } of page.messages) ids.add(messageId)
    after = page.next
    if (after === null) break
  }
  return ids
}

async function killAndStart(): Promise<void> {
  await pause(Math.floor(chance.next() * KILL_MS_MAX))
  await host.kill('SIGKILL')
  host = await startHost(scene.settings)
}

for (const [name, door] of Object.entries(DOORS)) {
  t.test(`crash: ${KILLS} kills in batches of ${name}, repeated under their keys [request.idempotency]`, async (t) => {
    const tags = Array.from({ length: 2 * KILLS }, (_, n) => `${name}-keyed-${n}`)
    const settled = new Map<string, string[]>()
    const senders = tags.map(async (tag) => {
      for (let tries = 0; tries < RETRIES_MAX && !settled.has(tag); tries += 1) {
        const ids = await post(door, tag, tag)
        if (ids === null) await pause(RETRY_MS)
        else settled.set(tag, ids)
      }
    })
    for (let kills = 0; kills < KILLS; kills += 1) await killAndStart()
    await Promise.all(senders)
    await until(() => settled.size === tags.length, 60_000)
    for (const tag of tags) {
      const ids = settled.get(tag) ?? []
      const again = await until(() => post(door, tag, tag), 20_000)
      // A batch whose later chunks failed is completed by its repeat.
      t.ok(
        ids.every((id) => again.includes(id)),
        `${tag}: what was accepted stays accepted`,
      )
      t.same([...(await logged(tag))].sort(), [...again].sort(), `${tag}: the log has each message once`)
    }
  })

  t.test(`crash: ${KILLS} kills in batches of ${name} without keys`, async (t) => {
    const accepted = new Map<string, string[]>()
    let number = 0
    let isOver = false
    const sender = async () => {
      while (!isOver) {
        const tag = `${name}-plain-${number++}`
        const ids = await post(door, tag)
        if (ids === null) await pause(RETRY_MS)
        else accepted.set(tag, ids)
      }
    }
    const senders = [sender(), sender()]
    for (let kills = 0; kills < KILLS; kills += 1) {
      const before = accepted.size
      await until(() => accepted.size > before, 60_000)
      await killAndStart()
    }
    isOver = true
    await Promise.all(senders)
    t.ok(accepted.size >= KILLS)
    for (const [tag, ids] of [...accepted].slice(-10)) {
      const held = ids.length === 0 ? new Set<string>() : await logged(tag)
      t.same(
        ids.filter((id) => !held.has(id)),
        [],
        tag,
      )
    }
  })
}
