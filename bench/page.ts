/**
 * page - the figures of docs/understand/performance.md: the machine, then the measurements one after the other, short
 * enough for some eight minutes on two cores
 *
 * Each measurement checks its own counts. One whose program is not installed is left out with the reason.
 */

import { cpus, totalmem } from 'node:os'
import { findRedisBinary } from '../cluster/embedded/binary.ts'
import { benchAccept } from './figures/accept.ts'
import { benchContent } from './figures/content.ts'
import { benchInbound } from './figures/inbound.ts'
import { benchLifecycle } from './figures/lifecycle.ts'
import { benchMemory } from './figures/memory.ts'
import { benchWebhooks } from './figures/webhooks.ts'

const LARGE_BYTES = 100 * 1024
const MS_PER_SECOND = 1_000
const GIB = 1024 ** 3

const PARTS: readonly [title: string, run: () => Promise<void>][] = [
  [
    'Acceptance with fsync: (a) the floor of the machine, (c) the product',
    () => benchAccept({ seconds: 6, rounds: 1, warmUpSeconds: 8, only: ['a', 'c'], isProfiled: false }),
  ],
  [
    'Small messages: from acceptance to a receiving server',
    () => benchLifecycle({ seconds: 6, messages: 10_000, rate: null, isMx: false }),
  ],
  ['Messages of 100 KB', () => benchContent({ messages: 300, bytes: LARGE_BYTES })],
  ['Received mail of 20 KB, beside Postfix', () => benchInbound({ rounds: 1, each: 100, only: ['rate'] })],
  ['Webhooks', () => benchWebhooks({ seconds: 6, posts: 10_000, only: ['all'] })],
  ['Memory of Redis for a delivered message', () => benchMemory(20_000)],
]

/** Measures and prints everything. Throws Error if a measurement failed, after the others. */
export async function benchPage(): Promise<void> {
  const beganMs = performance.now()
  const { command, version } = await findRedisBinary()
  const [{ model } = { model: 'unknown' }] = cpus()
  const gib = Math.round(totalmem() / GIB)
  console.log(
    `${cpus().length} cores (${model}), ${gib} GiB, Node.js ${process.versions.node}, ${command} ${version}\n`,
  )
  const failed: string[] = []
  for (const [title, run] of PARTS) {
    console.log(`## ${title}\n`)
    await run().catch((error: Error) => {
      failed.push(title)
      console.log(`Not measured: ${error.message}`)
    })
    console.log('')
  }
  console.log(`Took ${Math.round((performance.now() - beganMs) / MS_PER_SECOND)} s`)
  if (failed.length > 0) throw new Error(`Not measured: ${failed.join('; ')}`)
}
