/** pace - runs the open-loop generator (`generator.ts`) in a separate process */

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Ask, GeneratorOrder } from './generator.ts'
import type { Measured } from './measured.ts'
import { ADDRESSES, bodyTemplate, type Target } from './message.ts'
import { CONNECTIONS, childEnvironment } from './wrk.ts'

export interface Pace {
  /** Requests a second; null to follow the answers. */
  readonly rate: number | null
  readonly count: number
  /** Recipients, with `PLACE` in them; the usual ones by default. */
  readonly recipients?: { readonly template: string; readonly count: number }
  /** Instead of our own route: its requests, one for each key, and their body with `PLACE` in it. */
  readonly other?: { readonly asks: readonly Ask[]; readonly template: string }
}

/** Sends `count` requests at `rate` and waits for all the answers. */
export function pace(target: Target, { rate, count, recipients, other }: Pace): Promise<Measured> {
  const child = fork(fileURLToPath(new URL('./generator.js', import.meta.url)), { env: childEnvironment() })
  const order: GeneratorOrder = {
    target,
    template: other?.template ?? bodyTemplate(target.domain, recipients?.template),
    addresses: recipients?.count ?? ADDRESSES,
    connections: CONNECTIONS,
    rate,
    count: Math.round(count),
    ...(other !== undefined && { asks: other.asks }),
  }
  child.send(order)
  return new Promise((resolve, reject) => {
    child.once('message', (measured) => resolve(measured as Measured))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`The generator ended with ${code}`)))
  })
}
