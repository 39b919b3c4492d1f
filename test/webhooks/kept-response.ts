/** kept-response - what is kept of a receiver's answer: little, on one line, and no address. */
import t from 'tap'
import { LAST_RESPONSE_BYTES_MAX } from '../../schemas/limits.ts'
import { keptResponse } from '../../src/webhooks/post.ts'

t.test('kept-response: one line, no address, at most 512 bytes [webhook.delivery]', async (t) => {
  const cases = [
    ['ok', 'ok'],
    ['', ''],
    ['\u0000\u0000 \r\n', ''],
    ['{\n  "error": "unknown",\n  "id": 7\n}', '{ "error": "unknown", "id": 7 }'],
    ['No user ada@example.net here', 'No user <address> here'],
    ['{"recipient":"Ada.L+x@example.net"}', '{"recipient":"<address>"}'],
    ['/users?mail=ada%40example.net', '/users?<address>'],
    ['\ufffdbinary', '\ufffdbinary'],
  ] as const
  for (const [text, kept] of cases) t.equal(keptResponse(text), kept, JSON.stringify(text))
  for (const letter of ['a', 'é', '€', '😀']) {
    const kept = keptResponse(letter.repeat(1_024))
    t.ok(Buffer.byteLength(kept) <= LAST_RESPONSE_BYTES_MAX, letter)
    t.ok(Buffer.byteLength(kept) > LAST_RESPONSE_BYTES_MAX - 5, letter)
    t.ok(!/\p{Surrogate}|\ufffd/u.test(kept), `${letter} is not cut in two`)
  }
  for (let before = 480; before < 520; before += 1)
    t.notMatch(keptResponse(`${'x'.repeat(before)} ada@example.net`), /ada|@/, 'an address at the cut')
})
