/** unsubscribe-token - tokens that hold, and those that do not. */
import { createHmac, hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { decodeBase32, encodeBase32 } from '../../src/mail/base32.ts'
import { formatReturnToken } from '../../src/mail/return-path.ts'
import {
  formatUnsubscribeToken,
  formatUnsubscribeUrl,
  parseUnsubscribeToken,
} from '../../src/mail/unsubscribe-token.ts'

const KEY = Buffer.from(hkdfSync('sha256', 'a secret of the tests', '', 'token', 32))
const OF = {
  messageId: '0199aa11-2233-7abc-8def-0123456789ab',
  recipient: 7,
  serverId: '0199aa11-0000-7000-8000-0e7faee555a7',
  streamId: '0199aa11-0000-7000-8000-0e7faee555a8',
  hmac: 'AbCdEfGhIjKlMnOpQrSt_-',
}

t.test('unsubscribe-token: a formatted token is read again, in any case [unsubscribe.token]', async (t) => {
  for (let round = 0; round < 500; round += 1) {
    const hmac = createHmac('sha256', KEY).update(String(round)).digest('base64url').slice(0, 22)
    // The last character of 132 bits has two that are always 0 in 136: all that there are must come back.
    const of = { messageId: randomUUID(), recipient: round % 256, serverId: randomUUID(), streamId: randomUUID(), hmac }
    const token = formatUnsubscribeToken(KEY, of)
    t.match(token, /^[a-z2-7]{128}$/)
    t.same(parseUnsubscribeToken(KEY, token), of)
    t.same(parseUnsubscribeToken(KEY, token.toUpperCase()), of)
  }
})

t.test('unsubscribe-token: with any character changed it is forged [unsubscribe.token]', async (t) => {
  const token = formatUnsubscribeToken(KEY, OF)
  for (let at = 0; at < token.length; at += 1) {
    for (const other of 'a7') {
      if (token[at] === other) continue
      t.equal(parseUnsubscribeToken(KEY, token.slice(0, at) + other + token.slice(at + 1)), null, `${at} ${other}`)
    }
  }
})

t.test('unsubscribe-token: other texts are no tokens [unsubscribe.token]', async (t) => {
  const token = formatUnsubscribeToken(KEY, OF)
  const bytes = decodeBase32(token)
  const other = Buffer.from(bytes)
  other[0] = 0x10
  createHmac('sha256', KEY).update(other.subarray(0, 67)).digest().copy(other, 67, 0, 13)
  for (const text of [
    '',
    token.slice(1),
    `${token}a`,
    token.replace(/.$/, '1'),
    formatReturnToken(KEY, OF),
    formatUnsubscribeToken(randomBytes(32), OF),
    encodeBase32(other),
    'a'.repeat(128),
    'ı'.repeat(128),
  ])
    t.equal(parseUnsubscribeToken(KEY, text), null, text)
})

t.test('unsubscribe-token: the link is below the public address [unsubscribe.token]', async (t) => {
  t.equal(formatUnsubscribeUrl('https://mail.acme.test', 'abc'), 'https://mail.acme.test/u/abc')
  t.equal(formatUnsubscribeUrl('https://acme.test/mail//', 'abc'), 'https://acme.test/mail/u/abc')
})
