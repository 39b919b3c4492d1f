/** outgoing - built, measured, signed; the parts that the recipients of one message share and the others. */

import t from 'tap'
import type { ComposeInput } from '../../../src/mail/compose/compose.ts'
import { composeMessage } from '../../../src/mail/compose/compose.ts'
import { makeDkimKeyPair } from '../../../src/mail/compose/dkim-key.ts'
import { composeRaw } from '../../../src/mail/compose/raw.ts'
import { makeOutgoing } from '../../../src/outbound/thread/outgoing.ts'

const MESSAGE: ComposeInput = {
  messageId: 'm1',
  acceptedAtMs: 1_700_000_000_000,
  from: { address: 'shop@acme.test', name: null },
  to: [{ address: 'ann@a.test', name: null }],
  cc: [],
  subject: 'Hello',
  text: 'Hello',
  html: null,
  headers: {},
  attachments: [],
  boundarySeed: 'b1',
}
const { privateKey } = await makeDkimKeyPair()
const KEY = { domain: 'acme.test', selector: 's1', privateKey: privateKey.toString('base64') }

t.test('outgoing: signed, and its size is the size as built [send.size]', async (t) => {
  const built = composeMessage(MESSAGE)
  const ready = await makeOutgoing()({ message: MESSAGE, keys: [KEY], copies: 1 })
  if ('result' in ready) throw new Error('Message was refused')
  t.equal(ready.sizeBytes, built.length)
  t.match(ready.bytes.toString('latin1'), /^DKIM-Signature: v=1; /)
  t.same(ready.bytes.subarray(-built.length), built)
})

t.test('outgoing: a message is built once for its recipients, and is the same later [dkim.signed]', async (t) => {
  const outgoing = makeOutgoing()
  const input = { message: MESSAGE, keys: [KEY], copies: 2 }
  const [one, other] = await Promise.all([outgoing(input), outgoing(input)])
  t.equal(one, other)
  for (let n = 0; n < 5; n += 1) await outgoing({ ...input, message: { ...MESSAGE, messageId: `n${n}` } })
  const later = await outgoing(input)
  t.not(later, one, 'only a few are kept')
  t.same(later, one, 'and made again they are the same')
})

t.test('outgoing: a message that cannot be built fails, one that cannot be signed waits', async (t) => {
  const outgoing = makeOutgoing()
  const nul = await outgoing({ message: { ...MESSAGE, text: '\0' }, keys: [KEY], copies: 2 })
  t.match(nul, { result: 'bounced', phase: 'compose', sizeBytes: null })
  const big = { ...MESSAGE, text: 'x\r\n'.repeat(3_600_000) }
  t.match(await outgoing({ message: big, keys: [KEY], copies: 1 }), { result: 'bounced', phase: 'compose' })
  const broken = { ...KEY, privateKey: 'AAAA' }
  t.match(await outgoing({ message: MESSAGE, keys: [broken], copies: 2 }), { result: 'deferred', code: null })
  const mended = await outgoing({ message: MESSAGE, keys: [KEY], copies: 2 })
  t.notOk('result' in mended, 'a failure is not kept')
})

t.test('outgoing: a raw message is traced and signed, and its size counts without both', async (t) => {
  const raw = Buffer.from('From: shop@acme.test\r\nSubject: \xe9\r\n\r\n.Hello \xe9\r\n', 'latin1')
  const { messageId, acceptedAtMs, from } = MESSAGE
  const message = { messageId, acceptedAtMs, from, feedbackId: 'f', receivedBy: 'mail.test', raw }
  const ready = await makeOutgoing()({ message, keys: [KEY], copies: 1 })
  if ('result' in ready) throw new Error('Message was refused')
  const built = composeRaw(message)
  t.equal(ready.sizeBytes, built.length)
  t.same(ready.bytes.subarray(-built.length), built)
  t.same(ready.bytes.subarray(-raw.length), raw)
  t.match(ready.bytes.toString('latin1'), /^Received: by mail\.test .*\r\n.*\r\nDKIM-Signature: v=1; /)
})
