/**
 * feed - processes are killed while a feed is open: it continues, on another process too, and no event is missed or
 * repeated. The search of events then lists the same events as the feed.
 */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { startFleet, type Vessel } from '../../support/service/fleet.ts'

const WAIT_MS = 90_000
const MESSAGES = 120
const fleet = await startFleet(['http', 'http', 'actors', 'actors'])
t.teardown(() => fleet.end())
const { token } = fleet.firstRun.testServer
const authorization = `Bearer ${token}`

/** Sends until it is accepted; a 503 accepted nothing, and the key settles what was not answered. */
async function send(vessel: Vessel, name: string): Promise<string> {
  const answer = await until(async () => {
    const response = await fetch(`http://127.0.0.1:${vessel.httpPort}/v1/email`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', 'idempotency-key': name, connection: 'close' },
      body: JSON.stringify({ from: 'a@simulator.test', to: [`${name}@simulator.test`], subject: 'S', text: 'T' }),
    }).catch(() => null)
    return response?.status === 200 ? ((await response.json()) as { messageId: string }) : null
  }, WAIT_MS)
  return (answer as { messageId: string }).messageId
}

interface Heard {
  lastId: string | null
  /** Ids of entries in the order in which they came. */
  readonly ids: string[]
  readonly delivered: Set<string>
  /** Bodies as they came. */
  readonly events: unknown[]
}

/** Reads one connection of a feed until it ends. Returns the status, or null without an answer. */
async function read(vessel: Vessel, heard: Heard, stop: AbortSignal): Promise<number | null> {
  const last: Record<string, string> = heard.lastId === null ? {} : { 'last-event-id': heard.lastId }
  try {
    const response = await fetch(`http://127.0.0.1:${vessel.httpPort}/v1/events`, {
      headers: { authorization, ...last },
      signal: stop,
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      return response.status
    }
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) take(heard, block)
    }
    return 200
  } catch {
    return null
  }
}

function take(heard: Heard, block: string): void {
  const [, id, data] = /^id: (\S+)\ndata: (.*)$/.exec(block) ?? []
  if (id === undefined || data === undefined) return
  const body = JSON.parse(data) as { event: string; messageId: string }
  const { event, messageId } = body
  heard.lastId = id
  heard.events.push(body)
  heard.ids.push(id)
  if (event === 'delivered') heard.delivered.add(messageId)
}

/** All events of the server, walked in pages. */
async function walk(vessel: Vessel): Promise<{ id: string }[]> {
  const found: { id: string }[] = []
  for (let after: string | null = null; ; ) {
    const response = await fetch(`http://127.0.0.1:${vessel.httpPort}/v1/events/search`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ limit: 50, ...(after !== null && { after }) }),
    })
    const { events, next } = (await response.json()) as { events: { id: string }[]; next: string | null }
    found.push(...events)
    if (next === null) return found
    after = next
  }
}

t.test('feed: kill -9 of the process that serves it, and of the owners [event.feed] [event.search]', async (t) => {
  const [near, far] = fleet.with('http') as [Vessel, Vessel]
  const [first, second] = fleet.with('actors') as [Vessel, Vessel]
  const heard: Heard = { lastId: null, ids: [], delivered: new Set(), events: [] }
  const stop = new AbortController()
  const statuses = new Set<number | null>()
  const listening = (async () => {
    // Any living process. A feed that ended continues after the last received event.
    for (let turn = 0; !stop.signal.aborted; turn += 1)
      statuses.add(await read([near, far][turn % 2] as Vessel, heard, stop.signal))
  })()
  const accepted: string[] = []
  await until(async () => {
    accepted.push(await send(far, `warm${accepted.length}`))
    return heard.ids.length > 0
  }, WAIT_MS)
  const before = accepted.length
  for (let sent = 0; sent < MESSAGES; sent += 1) {
    if (sent === 30) await first.host.kill('SIGKILL')
    if (sent === 60) await near.host.kill('SIGKILL')
    if (sent === 80) await Promise.all([fleet.start(first, false), fleet.start(near, false)])
    if (sent === 100) await second.host.kill('SIGKILL')
    accepted.push(await send(far, `m${sent}`))
  }
  const wanted = accepted.slice(before)
  await until(() => wanted.every((id) => heard.delivered.has(id)), WAIT_MS)
  stop.abort()
  await listening
  t.equal(wanted.length, MESSAGES)
  t.equal(new Set(heard.ids).size, heard.ids.length, 'no entry twice')
  const all = await walk(far)
  const begin = all.findIndex(({ id }) => id === (heard.events[0] as { id: string }).id)
  t.same(all.slice(begin, begin + heard.events.length), heard.events, 'the search lists the same, in the same order')
  t.equal(new Set(all.map(({ id }) => id)).size, all.length)
  t.notOk(statuses.has(410) || statuses.has(500) || statuses.has(401), `${[...statuses]}`)
})
