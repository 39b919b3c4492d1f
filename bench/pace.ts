/**
 * pace - orders a run from the generator with a clock (`generator.ts`), in a process of its own
 */

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { GeneratorOrder } from './generator.ts'
import { bodyTemplate, type Target } from './message.ts'
import { CONNECTIONS, childEnvironment, type Measured } from './wrk.ts'

/** Sends `count` requests at `rate` a second (null: as fast as answers come) and waits for all the answers. */
export function pace(target: Target, { rate, count }: { rate: number | null; count: number }): Promise<Measured> {
  const child = fork(fileURLToPath(new URL('./generator.js', import.meta.url)), { env: childEnvironment() })
  const order: GeneratorOrder = {
    target,
    template: bodyTemplate(target.domain),
    connections: CONNECTIONS,
    rate,
    count: Math.round(count),
  }
  child.send(order)
  return new Promise((resolve, reject) => {
    child.once('message', (measured) => resolve(measured as Measured))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`The generator ended with ${code}`)))
  })
}
