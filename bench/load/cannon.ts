/**
 * cannon - one run of autocannon in a separate process, for machines without wrk
 *
 * The order comes as a message, the result goes back as one.
 */

import { createRequire } from 'node:module'
import type { Measured } from './measured.ts'
import { ADDRESSES, formatPlace, PLACE, type Target } from './message.ts'

export interface CannonOrder {
  readonly target: Target
  readonly seconds: number
  readonly connections: number
  readonly template: string
}

interface CannonRequest {
  headers: Record<string, string>
  body: string
}

interface CannonResult {
  '2xx': number
  non2xx: number
  errors: number
  timeouts: number
  duration: number
  latency: { p50: number; p99: number }
}

// The package ships no types.
type Autocannon = (options: object) => Promise<CannonResult>
const autocannon = createRequire(import.meta.url)('autocannon') as Autocannon

process.once('message', (order) => {
  void fire(order as CannonOrder).then((measured) => process.send?.(measured, () => process.disconnect()))
})

async function fire({ target, seconds, connections, template }: CannonOrder): Promise<Measured> {
  const [first = '', last = ''] = template.split(PLACE)
  let n = -1
  const setupRequest = (request: CannonRequest): CannonRequest => {
    n += 1
    const key = target.keys[n % target.keys.length]
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    return { ...request, headers, body: first + formatPlace(n % ADDRESSES) + last }
  }
  const url = `http://127.0.0.1:${target.port}/v1/email`
  const requests = [{ method: 'POST', setupRequest }]
  const result = await autocannon({ url, connections, duration: seconds, requests })
  return {
    accepted: result['2xx'],
    refused: result.non2xx,
    broken: result.errors + result.timeouts,
    perSecond: result['2xx'] / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  }
}
