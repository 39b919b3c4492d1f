/**
 * Fuzz of the feed of events: clients that connect, read, pause, are cut off and continue at random while messages are
 * sent, and ids that no feed has issued. Each client that continues after its last event gets each event once, in one
 * order for all. Every other answer is one of the contract. No place and no memory is leaked. FUZZ_RUNS sets the
 * number of messages.
 */
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { residentMb, sendAgain, wrongOf } from '../../support/clients/crash-http.ts'
import { until } from '../../support/machine/until.ts'
import { startScene } from '../../support/service/crash-scene.ts'

const MESSAGES = Number(process.env.FUZZ_RUNS ?? 200)
const SEED = Number(process.env.SEED ?? 1)
/** One less than a server may have, so that odd requests find a place. */
const CLIENTS = 4
const ODD_IDS = 200
const WAIT_MS = 60_000
const GROWTH_MB_MAX = 150
const EVENTS_OF: Readonly<Record<string, number>> = { fine: 1, bounce: 1, deferred: 3, 'code-451': 3, complaint: 2 }

const { settings, firstRun, host, end } = await startScene()
t.teardown(async () => {
  await host.kill('SIGKILL')
  await end()
})
const PORTS = { http: Number(settings.HTTP_PORT), operator: Number(settings.OPERATOR_PORT) }
const authorization = `Bearer ${firstRun.testServer.token}`

/** Whole numbers below `below`, the same in each run. */
function drawer(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** The begin of an answer. Rejects if there is none. */
function open(lastId: string | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, ...(lastId !== null && { 'last-event-id': lastId }) }
    const asked = request({ host: '127.0.0.1', port: PORTS.http, path: '/v1/events', agent: false, headers })
    asked.once('error', reject)
    asked.once('response', resolve)
    asked.end()
  })
}

interface Heard {
  readonly id: string
  readonly eventId: string
  readonly what: string
}

/** A client that continues after its last event however often it is cut off. */
class Laptop {
  readonly heard: Heard[] = []
  readonly statuses = new Map<number, number>()
  connections = 0
  private readonly draw: (below: number) => number
  private isOver = false

  constructor(seed: number) {
    this.draw = drawer(seed)
  }

  /** Listens until it is stopped. In: a function that is called once it listens for the first time. */
  async run(listening: () => void): Promise<void> {
    while (!this.isOver) {
      const answer = await open(this.heard.at(-1)?.id ?? null)
      this.statuses.set(answer.statusCode ?? 0, (this.statuses.get(answer.statusCode ?? 0) ?? 0) + 1)
      if (answer.statusCode !== 200) {
        answer.resume()
        await pause(this.draw(50))
        continue
      }
      this.connections += 1
      await this.listen(answer, listening)
    }
  }

  stop(): void {
    this.isOver = true
  }

  /** Reads until it is cut off by its own hand, or the service's. */
  private async listen(answer: IncomingMessage, listening: () => void): Promise<void> {
    let rest = ''
    // The first connection gets an event, because without a last event the next one would start from scratch.
    const eventsMax = this.heard.length + 1 + this.draw(60)
    answer.on('error', () => undefined)
    try {
      for await (const piece of answer) {
        listening()
        rest += String(piece)
        const blocks = rest.split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) this.take(block)
        if (this.draw(6) === 0) await pause(this.draw(120))
        const isCut = this.heard.length >= eventsMax || (this.heard.length > 0 && this.draw(12) === 0)
        if (this.isOver || isCut) break
      }
    } catch {
      // Cut off.
    }
    answer.destroy()
    if (this.draw(2) === 0) await pause(this.draw(150))
  }

  private take(block: string): void {
    const [, id = '', data = ''] = /^id: (\S+)\ndata: (.*)$/.exec(block) ?? []
    if (data === '') return
    const { id: eventId, event, messageId, recipient } = JSON.parse(data)
    this.heard.push({ id, eventId, what: `${event} ${messageId} ${recipient}` })
  }
}

async function feedsOpen(): Promise<number> {
  const came = await sendAgain({ port: PORTS.operator, method: 'GET', path: '/metrics', headers: {} })
  return Number(/^sendwright_feeds_open (\d+)$/m.exec(came.text)?.[1])
}

t.test(`fuzz: ${CLIENTS} clients that are cut off receive ${MESSAGES} messages completely [event.feed]`, async (t) => {
  t.comment(`SEED=${SEED}`)
  const draw = drawer(SEED)
  const before = residentMb(host.pid)
  const laptops = Array.from({ length: CLIENTS }, (_, n) => new Laptop(SEED * 100 + n))
  let areListening = 0
  const running = laptops.map((one) => {
    let isFirst = true
    return one.run(() => {
      if (isFirst) areListening += 1
      isFirst = false
    })
  })
  await until(() => areListening === CLIENTS, WAIT_MS)
  let expected = 0
  const kinds = Object.keys(EVENTS_OF)
  for (let n = 0; n < MESSAGES; ) {
    const messages = Array.from({ length: Math.min(1 + draw(10), MESSAGES - n) }, () => {
      const kind = kinds[draw(kinds.length)] as string
      expected += EVENTS_OF[kind] ?? 0
      n += 1
      return { from: 'a@simulator.test', to: [`${kind}+${n}@simulator.test`], subject: 's', text: 't' }
    })
    const body = JSON.stringify({ messages })
    const headers = { authorization, 'content-type': 'application/json' }
    const came = await sendAgain({ port: PORTS.http, method: 'POST', path: '/v1/email/batch', headers, body })
    t.equal(came.status, 200, came.text)
    if (draw(3) === 0) await pause(draw(40))
  }
  await until(() => laptops.every(({ heard }) => heard.length >= expected), WAIT_MS)
  for (const one of laptops) one.stop()
  // Events for each of them, so that each has a lookup.
  await sendAgain({
    port: PORTS.http,
    method: 'POST',
    path: '/v1/email',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ from: 'a@simulator.test', to: ['last@simulator.test'], subject: 's', text: 't' }),
  })
  await Promise.all(running)
  const [first = []] = laptops.map(({ heard }) => heard.slice(0, expected))
  t.equal(new Set(first.map(({ eventId }) => eventId)).size, expected, 'each event once')
  for (const { heard, statuses, connections } of laptops) {
    t.comment(JSON.stringify({ connections, statuses: Object.fromEntries(statuses) }))
    t.same(heard.slice(0, expected), first, 'the same for all, in one order')
    t.same(
      [...statuses.keys()].filter((status) => ![200, 409].includes(status)),
      [],
    )
    t.ok(connections > MESSAGES / 60, 'it was cut off again and again')
  }
  await until(async () => (await feedsOpen()) === 0, WAIT_MS)
  t.ok(host.isRunning())
  t.ok(residentMb(host.pid) - before < GROWTH_MB_MAX, 'memory stays bounded')
})

/** Requests the events after an id. Returns the status, and the fault of the answer. */
async function askAfter(id: string): Promise<{ status: number; fault: string | null }> {
  const answer = await open(id)
  const status = answer.statusCode ?? 0
  if (status === 200) {
    answer.destroy()
    return { status, fault: null }
  }
  let text = ''
  for await (const piece of answer) text += String(piece)
  const fault = wrongOf({ status, headers: answer.headers, text })
  const isId = /^\d{1,15}-\d{1,19}$/.test(id.trim())
  return { status, fault: fault ?? (status === (isId ? 410 : 400) || status === 409 ? null : `status ${status}`) }
}

t.test(`fuzz: ${ODD_IDS} ids that a feed may have issued or not [event.feed]`, async (t) => {
  const digits = (most: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: most })
  const near = fc.tuple(digits(17), fc.constantFrom('-', '--', '', ' - '), digits(21)).map((parts) => parts.join(''))
  const latin = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) })
  const id = fc.oneof(
    near,
    near,
    latin,
    fc.constantFrom('', '0-0', '-', '+', '$', '0', `${Date.now()}-0`, '1'.repeat(4000)),
  )
  const wrong: string[] = []
  const statuses = new Map<number, number>()
  const ids = fc.sample(id, { numRuns: ODD_IDS, seed: SEED })
  const client = async (): Promise<void> => {
    for (let one = ids.pop(); one !== undefined; one = ids.pop()) {
      const { status, fault } = await askAfter(one)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (fault !== null) wrong.push(`${fault} for ${JSON.stringify(one)}`)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  t.comment(JSON.stringify(Object.fromEntries(statuses)))
  t.same(wrong.slice(0, 5), [])
  t.ok((statuses.get(400) ?? 0) > 0 && (statuses.get(410) ?? 0) > 0)
  await until(async () => (await feedsOpen()) === 0, WAIT_MS)
  t.ok(host.isRunning())
})
