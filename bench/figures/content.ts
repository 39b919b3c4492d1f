/**
 * content - mails with attachments: the rate of durable acceptance, and their Redis memory while they are queued
 *
 * The same messages are sent once with the content store in files and once in Redis, each on a store of its own.
 * Effects are held, so every message stays queued, like deferred mail.
 */

import { randomBytes } from 'node:crypto'
import { startHost } from '../contestants/host.ts'
import { readInfo, startStore } from '../store.ts'
import { formatNumber, formatTable } from '../table.ts'

const CLIENTS = 16
const KIB = 1024
const TARGET_BYTES = 2 * 1024 * KIB
const TARGET_MESSAGES = 1_000

interface ContentFigure {
  readonly perSecond: number
  /** Of `used_memory_dataset`. */
  readonly grown: number
}

/** Sends `messages` with `bytes` of attachment to both and prints them. Throws Error if one is not accepted. */
export async function benchContent({ messages, bytes }: { messages: number; bytes: number }): Promise<void> {
  const file = await measureHome('file', { messages, bytes })
  const redis = await measureHome('redis', { messages, bytes })
  console.log(`content: ${formatNumber(messages)} messages with ${formatNumber(bytes / KIB)} KiB, ${CLIENTS} clients\n`)
  const row = (name: string, { perSecond, grown }: ContentFigure): string[] => [
    name,
    formatNumber(perSecond, 1),
    formatNumber(grown / KIB),
  ]
  console.log(formatTable([['', 'accepted/s', 'KiB of Redis'], row('file', file), row('redis', redis)]))
  const perTarget = (file.grown / messages) * TARGET_MESSAGES
  const verdict = perTarget <= TARGET_BYTES ? 'reached' : 'missed'
  console.log(
    `\nFiles at ${formatNumber(file.perSecond / redis.perSecond, 2)} of the rate; ${formatNumber(perTarget / KIB)} KiB of Redis for ${formatNumber(TARGET_MESSAGES)} that wait; target <= ${formatNumber(TARGET_BYTES / KIB)}: ${verdict}`,
  )
}

async function measureHome(
  contentStore: 'file' | 'redis',
  { messages, bytes }: { messages: number; bytes: number },
): Promise<ContentFigure> {
  const store = await startStore()
  try {
    const host = await startHost('product', store, { accounts: 1, isHeld: true, mode: 'test', contentStore })
    const dataset = () => readInfo(store.client, 'memory', 'used_memory_dataset')
    const { port, keys } = host.ready
    const send = makeSender(port, keys[0] as string, bytes)
    await Promise.all(Array.from({ length: CLIENTS }, send))
    const before = await dataset()
    const startedAtMs = performance.now()
    let sent = 0
    const client = async (): Promise<void> => {
      while (sent < messages) {
        sent += 1
        await send()
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    const perSecond = (messages * 1000) / (performance.now() - startedAtMs)
    const grown = (await dataset()) - before
    await host.stop()
    return { perSecond, grown }
  } finally {
    await store.stop()
  }
}

function makeSender(port: number, token: string, bytes: number): () => Promise<void> {
  const content = randomBytes(bytes).toString('base64')
  const attachments = [{ name: 'a.bin', contentType: 'application/octet-stream', content }]
  const message = {
    from: 'you@simulator.test',
    to: ['someone@simulator.test'],
    subject: 'Attached',
    text: 'See there.',
  }
  const body = JSON.stringify({ ...message, attachments })
  return async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/email`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`A message was not accepted: ${answer.status} ${text}`)
  }
}
