/** fresh-mails - a mail just received can be taken once, within bounds of bytes and time. */
import t from 'tap'
import { FreshMails, FreshPieces } from '../../src/reception/fresh-mails.ts'

const KIB = 1024

t.test('fresh-mails: pieces become the mail, in memory that threads share; a large one is dropped', async (t) => {
  const small = new FreshPieces()
  for (const piece of ['one', '', 'two']) small.add(Buffer.from(piece))
  const raw = small.whole()
  t.equal(Buffer.from(raw ?? []).toString(), 'onetwo')
  t.ok(raw?.buffer instanceof SharedArrayBuffer)
  const large = new FreshPieces()
  large.add(Buffer.alloc(200 * KIB))
  large.add(Buffer.alloc(56 * KIB))
  t.equal(large.whole()?.length, 256 * KIB)
  large.add(Buffer.alloc(1))
  t.equal(large.whole(), null)
})

t.test('fresh-mails: a mail is given once, and the oldest make room', async (t) => {
  const mails = new FreshMails(() => 0)
  const raw = new Uint8Array(256 * KIB)
  for (let n = 0; n < 40; n += 1) mails.keep(`m${n}`, raw)
  t.same(mails.size, { mails: 32, bytes: 8 * 1024 * KIB })
  t.equal(mails.take('m7'), null, 'the oldest are gone')
  t.equal(mails.take('m8'), raw)
  t.equal(mails.take('m8'), null, 'once')
  mails.keep('m9', new Uint8Array(1))
  t.same(mails.size, { mails: 31, bytes: 30 * 256 * KIB + 1 }, 'anew under the same name')
})

t.test('fresh-mails: an unused mail is dropped after a minute', async (t) => {
  let nowMs = 0
  const mails = new FreshMails(() => nowMs)
  mails.keep('a', new Uint8Array(10))
  nowMs = 40_000
  mails.keep('b', new Uint8Array(10))
  nowMs = 60_000
  mails.forgetOld()
  t.equal(mails.size.mails, 1, 'one is younger')
  nowMs = 120_000
  mails.forgetOld()
  t.equal(mails.size.mails, 0)
})
