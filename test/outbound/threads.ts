/** threads - which jobs need a thread, and that both ways come to the same. */

import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import t from 'tap'
import { composeMessage } from '../../src/mail/compose/compose.ts'
import { formatFeedbackId } from '../../src/mail/compose/feedback-id.ts'
import { CLEAR_PASSWORD, type SimulateJob } from '../../src/outbound/thread/thread-job.ts'
import { makeMailRoom, makeRelayWatch } from '../../src/outbound/threads.ts'
import { readConfig } from '../../src/process/config.ts'
import { openFence } from '../../src/process/fence.ts'
import type { Log } from '../../src/process/log.ts'
import { makeSecrets } from '../../src/process/secrets.ts'
import { measuringJob } from '../../src/sending/send.ts'
import { ringOf } from '../support/world/rings.ts'

const NEVER = new AbortController().signal

function openRoom(t: Test) {
  const log = { error: () => undefined } as unknown as Log
  const config = readConfig({})
  if (!config.ok) throw new Error('Settings are refused')
  const fence = openFence()
  fence.beatAnswered(fence.beatSent() + 60_000)
  const room = makeMailRoom({ config: config.config, fence, log })
  let threads = 0
  const count = () => {
    threads += 1
  }
  process.on('worker', count)
  t.teardown(async () => {
    process.off('worker', count)
    await room.close(0)
  })
  return { room, threads: () => threads }
}

function jobOf(address: string, textChars: number): SimulateJob {
  return {
    message: {
      messageId: 'm1',
      acceptedAtMs: 0,
      from: { address: 'shop@acme.test', name: null },
      to: [{ address, name: null }],
      cc: [],
      subject: 'Hello',
      text: 'x'.repeat(textChars),
      html: null,
      headers: {},
      attachments: [],
      boundarySeed: 'b1',
    },
    simulate: { address, attempt: 1 },
  }
}

t.test('small simulated messages start no thread, large ones do, with the same outcome', async (t) => {
  const { room, threads } = openRoom(t)
  const addresses = ['ann@a.test', 'bounce@simulator.test', 'deferred@simulator.test']
  const small = await Promise.all(addresses.map((address) => room.run(jobOf(address, 10), NEVER)))
  t.equal(threads(), 0)
  const large = await Promise.all(addresses.map((address) => room.run(jobOf(address, 65_537), NEVER)))
  t.ok(threads() > 0)
  const without = small.map(({ sizeBytes: _, ...outcome }) => outcome)
  t.match(large, without)
  t.strictSame(
    small.map(({ result }) => result),
    ['delivered', 'bounced', 'deferred'],
  )
  t.ok(large.every(({ sizeBytes }) => (sizeBytes ?? 0) > 65_537))
})

t.test('a message is measured in a thread', async (t) => {
  const { room, threads } = openRoom(t)
  const message = {
    from: { address: 'shop@acme.test', domain: 'acme.test', name: null },
    recipients: [{ address: 'ann@a.test', name: null, kind: 'to' as const }],
    streamId: null,
    subject: 'Hello',
    text: 'x'.repeat(1000),
    html: null,
    headers: {},
    attachments: [],
    raw: null,
    sendAtMs: null,
    tag: null,
    metadata: {},
  }
  const ids = {
    streamId: randomUUID(),
    accountId: randomUUID(),
    senderId: makeSecrets(ringOf('x'.repeat(32))).senderId,
  }
  for (const { tag, tagHash } of [
    { tag: null, tagHash: null },
    { tag: 'welcome', tagHash: 'aB_-c123' },
  ]) {
    const { text, html, headers, attachments, from, subject } = message
    const built = composeMessage({
      messageId: randomUUID(),
      acceptedAtMs: Date.UTC(2026, 0, 31),
      to: [{ address: 'ann@a.test', name: null }],
      cc: [],
      feedbackId: formatFeedbackId({ ...ids, tagHash }),
      boundarySeed: 'c-0',
      ...{ text, html, headers, attachments, from, subject },
    })
    t.equal(await room.measure(measuringJob({ ...message, tag }, 'c-0')), built.length, 'as long as what will be built')
  }
  t.ok(threads() > 0)
})

t.test('a relay that would get the password in plain text is reported once [delivery.relay.password]', async (t) => {
  const told: unknown[] = []
  const watch = makeRelayWatch({ error: (fields: unknown) => void told.push(fields) } as unknown as Log)
  const refused = `${CLEAR_PASSWORD}: no TLS with relay.test (502 what), relay.test`
  for (const response of [null, '250 ok', '451 4.3.0 RELAY_URL', refused, refused]) watch({ response })
  t.same(told, [{ reason: refused }])
})
