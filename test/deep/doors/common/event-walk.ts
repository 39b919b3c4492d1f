/** event-walk - newest first without a gap, however many events lie in a span and however few a search looks at. */
import t from 'tap'
import { makeIds, msOf } from '../../../../cluster/id.ts'
import { type WalkedEvent, walkEvents } from '../../../../src/doors/common/event-walk.ts'
import type { OwnApi } from '../../../../src/doors/common/own-api.ts'
import type { EdgeRequest } from '../../../../src/http/request.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000
const REQUEST = {} as EdgeRequest

interface Asked {
  readonly event: string
  readonly from: string
  readonly to: string
  readonly limit: number
  readonly after?: string
}

/** Events in the order of time, and a search of them that looks at `lookedAtMax` events. */
function log(events: readonly WalkedEvent[], lookedAtMax: number): OwnApi {
  return {
    baseUrl: '',
    nowMs: () => NOW_MS,
    async call(_name, _request, asked) {
      const { event, from, to, limit, after } = (asked as { body: unknown }).body as Asked
      const startMs = Date.parse(from)
      const first = events.findIndex(({ id }) => (after === undefined ? msOf(id) >= startMs : id > after))
      const found: WalkedEvent[] = []
      const end = first < 0 ? 0 : Math.min(events.length, first + lookedAtMax)
      for (let at = Math.max(0, first); at < end; at += 1) {
        const one = events[at] as WalkedEvent
        if (msOf(one.id) >= Date.parse(to)) return answer(found, null)
        if (one.event === event) found.push(one)
        if (found.length === limit) return answer(found, one.id)
      }
      return answer(found, end > 0 && end < events.length ? (events[end - 1] as WalkedEvent).id : null)
    },
  }
}

function answer(events: readonly WalkedEvent[], next: string | null) {
  return { status: 200, json: { events, next } }
}

/** `count` events within `spanMs` before now; one in `every` is a bounce. */
function make(count: number, spanMs: number, every: number): WalkedEvent[] {
  const ids = makeIds({ shard: 0, last: '', random: () => 0.5 })
  return Array.from({ length: count }, (_, place) => {
    const ms = NOW_MS - spanMs + Math.floor((place / count) * spanMs)
    const event = place % every === 0 ? 'bounced' : 'delivered'
    return { id: ids.next(ms), event } as unknown as WalkedEvent
  })
}

t.test('event-walk: the newest of many, in order and without a gap', async (t) => {
  for (const [count, spanMs, every, lookedAtMax] of [
    [300_000, 2 * HOUR_MS, 2, 10_000],
    [300_000, 1_000, 1, 10_000],
    [400_000, 48 * HOUR_MS, 100, 1_000],
    [100, 700 * HOUR_MS, 2, 10_000],
  ] as const) {
    const events = make(count, spanMs, every)
    const asked = { events: ['bounced', 'delivered'], fromMs: null, toMs: null, enough: 300 } as const
    const walked = await walkEvents(REQUEST, log(events, lookedAtMax), asked)
    if ('answer' in walked) throw new Error('The log answered')
    const newest = events.slice(-300).reverse()
    const same = walked.events.slice(0, 300).every(({ id }, place) => id === newest[place]?.id)
    t.ok(same && walked.events.length >= newest.length, `${count} in ${spanMs} ms`)
  }
})
