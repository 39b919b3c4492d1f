/**
 * body-reader - small messages are read at once, large ones in a thread; one that takes too long is put off, and
 * the next read.
 */

import t from 'tap'
import { makeBodyReader } from '../../../src/reception/submission/body-reader.ts'

const mailOf = (bytes: number) => Buffer.from(`Subject: x\r\n\r\n${`${'y'.repeat(70)}\r\n`.repeat(bytes / 72)}`)

t.test('body-reader: the same is read here and in the thread', async (t) => {
  const room = makeBodyReader()
  t.teardown(() => room.close())
  const small = room.read({ edited: mailOf(1000), isKeyed: false })
  t.notOk(small instanceof Promise, 'without a thread')
  t.match(small, { mail: { subject: 'x', text: /^y{70}\n/ }, digests: null })
  const large = await room.read({ edited: mailOf(100_000), isKeyed: true })
  t.match(large, { mail: { subject: 'x', text: /^y{70}\n/ }, digests: [], wholeDigest: null })
})

t.test(
  'body-reader: a body that takes too long is deferred, and harms no other message [submission.log]',
  async (t) => {
    const room = makeBodyReader(1)
    t.equal(await room.read({ edited: mailOf(9_000_000), isKeyed: true }), 'busy')
    t.match(room.read({ edited: mailOf(1000), isKeyed: false }), { mail: { subject: 'x' } })
    await room.close()
    t.equal(await room.read({ edited: mailOf(100_000), isKeyed: false }), 'busy', 'so is what comes after the end')
  },
)
