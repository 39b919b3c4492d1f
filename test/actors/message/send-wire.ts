/** Tests of src/actors/send-wire.ts: a send and its answer are the same after the transfer. */
import { test } from 'tap'
import { refuse } from '../../../src/actors/authorization/refusal.ts'
import type { SendBody, SendReply } from '../../../src/actors/message/send.ts'
import { sendWire } from '../../../src/actors/message/send-wire.ts'
import { makeItem, makeSend, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const travelled = (packed: unknown): unknown => JSON.parse(JSON.stringify(packed))

const NOW_MS = Date.UTC(2026, 10, 20)

test('send-wire: a send is what it was, in every field', async (t) => {
  const tenant = makeTenant(new World(NOW_MS))
  const [only] = makeSend(tenant).messages
  const recipients = ['to', 'cc', 'bcc'].map((kind, n) => ({
    address: `ä${n}@example.net`,
    name: n === 0 ? null : `Name, "${n}"`,
    kind: kind as 'to' | 'cc' | 'bcc',
    hmac: `${n}`.repeat(22),
    domain: 'example.net',
  }))
  const attachment = { name: 'a.txt', contentType: 'text/plain', contentId: 'cid', size: 9, inline: true }
  const cases: SendBody[] = [
    makeSend(tenant),
    makeSend(tenant, { test: true, billing: true, batch: true, idempotency: { hash: 'h', fingerprint: 'f' } }),
    makeSend(tenant, {
      messages: [
        only!,
        makeItem({
          streamId: tenant.live.streamId,
          recipients,
          tag: null,
          tagHash: null,
          metadata: { orderId: '1' },
          headers: { 'X-A': 'b' },
          attachments: [attachment],
          content: {
            parts: ['body', 'a0'].map((part, n) => ({ part, chunks: n + 1, blob: n === 0 ? 0 : null })),
            stored: { key: 'sealed', body: false, files: true },
          },
          builtBytes: 7,
          lane: 'relay',
        }),
      ],
    }),
  ]
  const raw = { bytes: 1400, messageId: '<a@b.c>' }
  const stored = { key: 'sealed', body: true, files: true }
  for (const content of [only!.content, { parts: [], stored }])
    cases.push(makeSend(tenant, { source: 's', messages: [makeItem({ raw, content })] }))
  for (const body of cases) t.same(sendWire.unpack(travelled(sendWire.pack(body))), body)
  const [length, packedLength] = [cases[0], sendWire.pack(cases[0]!)].map((one) => JSON.stringify(one).length)
  t.ok(packedLength! < length! * 0.7, `${packedLength} instead of ${length} characters`)
  for (const odd of [null, 5, 'x', {}, [], [1], cases[0]]) t.throws(() => sendWire.unpack(odd), JSON.stringify(odd))
})

test('send-wire: an answer is what it was, whatever it says', async (t) => {
  const accepted: SendReply = {
    kind: 'accepted',
    messages: [
      { messageId: 'm1', submittedAtMs: 1 },
      { messageId: 'm2', submittedAtMs: 2, suppressed: [0, 3] },
    ],
    test: false,
    replayed: true,
    rate: ['server', 'account'].map((scope) => ({
      scope: scope as 'server' | 'account',
      limit: 300,
      left: 0,
      resetsAtMs: 60_000,
    })),
  }
  for (const reply of [accepted, refuse('stream_paused', { pausedAtMs: 5, index: 0 }).answer])
    t.same(sendWire.unpackReply(travelled(sendWire.packReply(reply))), reply)
})
