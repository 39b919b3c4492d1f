/**
 * The service, or its Redis, is ended with SIGKILL while messages arrive over SMTP, also between the final dot and the
 * reply. No message with a 250 is lost, one with an Idempotency-Key exists once, and one without exists twice only if
 * its 250 was lost. `KILLS=50` asks for more, `SEED=n` for other choices.
 */
import t, { type Test } from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { openSubmission, submitMail } from '../../support/peers/submission.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const KILLS = Number(process.env.KILLS ?? 4)
const CLIENTS = 8
const TRY_MS_MAX = 60_000
const PAGE = 100
const seed = Number(process.env.SEED ?? 1)

const submissionPort = await freePort()
const { redis, settings, firstRun, end } = await setScene({
  SUBMISSION_PORT: String(submissionPort),
  CONTENT_STORE: 'file',
})
const token = firstRun.testServer.token
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  await end()
})

/** A message as its client knows it. */
interface Handed {
  readonly isKeyed: boolean
  /** Tries that may have been accepted, and whose 250 did not come. */
  unanswered: number
  /** The ids in replies with 250. */
  readonly told: string[]
}

/** Clients that hand over one message after the other, each until it is accepted. */
function startClients(name: string) {
  const handed = new Map<string, Handed>()
  const wrong: string[] = []
  let isOver = false
  let next = 0
  const client = async (): Promise<void> => {
    while (!isOver) {
      const subject = `${name}-${next}`
      const one: Handed = { isKeyed: next % 2 === 0, unanswered: 0, told: [] }
      // Every tenth is too large for the commit, so its content is written before.
      const text = next % 10 === 0 ? `${'x'.repeat(70)}\n`.repeat(2000) : 'Hello\n'
      next += 1
      handed.set(subject, one)
      const key = one.isKeyed ? `X-Sendwright-Idempotency-Key: ${subject}\n` : ''
      const mail = `${key}From: you@simulator.test\nTo: person@simulator.test\nSubject: ${subject}\n\n${text}`
      const endMs = performance.now() + TRY_MS_MAX
      while (one.told.length === 0 && performance.now() < endMs) await handOver(one, mail)
    }
  }
  async function handOver(one: Handed, mail: string): Promise<void> {
    try {
      const dialog = await openSubmission(submissionPort, { password: token })
      one.unanswered += 1
      const reply = await submitMail(dialog, ['person@simulator.test'], mail)
      dialog.end()
      if (reply === '') return
      one.unanswered -= 1
      const id = /^250 2\.0\.0 accepted ([\da-f-]{36})$/.exec(reply)?.[1]
      if (id !== undefined) one.told.push(id)
      else if (!/^4\d\d /.test(reply)) wrong.push(reply)
    } catch {
      // No process listens, or the session ended before its login. The next try follows.
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, client))
  const accepted = () => [...handed.values()].filter(({ told }) => told.length > 0).length
  return {
    handed,
    wrong,
    passes: (more: number) => {
      const from = accepted()
      return until(() => accepted() >= from + more, TRY_MS_MAX)
    },
    async end() {
      isOver = true
      await clients
    },
  }
}

/** Ids in the log by subject, and the ones that are not delivered yet. */
async function readLog(): Promise<{ ids: Map<string, string[]>; open: string[] }> {
  const ids = new Map<string, string[]>()
  const open: string[] = []
  for (let after: string | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
    const answer = await fetch(`http://127.0.0.1:${settings.HTTP_PORT}/v1/messages/search`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ limit: PAGE, ...(after !== null && { after }) }),
    })
    const page = (await answer.json()) as {
      messages: { messageId: string; subject: string; status: string }[]
      next: string | null
    }
    for (const { messageId, subject, status } of page.messages) {
      ids.set(subject, [...(ids.get(subject) ?? []), messageId])
      if (status !== 'delivered') open.push(messageId)
    }
    after = page.next
  }
  return { ids, open }
}

async function check(t: Test, { handed, wrong }: ReturnType<typeof startClients>): Promise<void> {
  const { ids } = await until(async () => {
    const log = await readLog()
    return log.open.length === 0 ? log : null
  }, TRY_MS_MAX)
  const [lost, doubled, twice]: [string[], string[], string[]] = [[], [], []]
  let copies = 0
  for (const [subject, { isKeyed, told, unanswered }] of handed) {
    const found = ids.get(subject) ?? []
    if (told.length !== 1 || !told.every((id) => found.includes(id))) lost.push(subject)
    if (isKeyed && found.length !== 1) doubled.push(`${subject}: ${found.length}`)
    if (!isKeyed && found.length > 1 + unanswered) twice.push(`${subject}: ${found.length}, ${unanswered} unanswered`)
    copies += found.length - 1
  }
  t.same(lost, [], 'what had its 250 is there')
  t.same(doubled, [], 'one message for each key')
  t.same(twice, [], 'twice only where a 250 did not come')
  t.same(wrong, [], 'and nothing was refused for good')
  t.comment(JSON.stringify({ messages: handed.size, copies }))
}

for (const point of ['decided', 'committed, reply lost'] as const) {
  t.test(`crash: killed when ${point}, between the final dot and the reply [submission.durable]`, async (t) => {
    const dying = await startHost(settings, { point })
    host = dying
    const clients = startClients(point.replaceAll(/\W+/g, ''))
    await dying.exited
    host = await startHost(settings)
    await clients.passes(CLIENTS * 2)
    await clients.end()
    await check(t, clients)
    const tries = [...clients.handed.values()].filter(({ unanswered }) => unanswered > 0)
    t.ok(tries.length > 0, 'the end came where it was meant to')
    await host.kill('SIGTERM')
  })
}

t.test(`crash: ${KILLS} kills under load [submission.durable]`, async (t) => {
  t.comment(`SEED=${seed}`)
  host = await startHost(settings)
  const clients = startClients('load')
  const random = chance(seed)
  for (let n = 0; n < KILLS; n += 1) {
    await clients.passes(10)
    await new Promise((resolve) => setTimeout(resolve, random() * 200))
    if (random() < 0.3) {
      await redis.kill('SIGKILL')
      await redis.restart()
    } else {
      await host.kill('SIGKILL')
      host = await startHost(settings, { ready: false })
    }
  }
  await clients.passes(10)
  await clients.end()
  await check(t, clients)
  t.ok(clients.handed.size > KILLS * 10, 'there was load')
})

/** mulberry32: 0 to 1. */
function chance(first: number): () => number {
  let state = first
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
