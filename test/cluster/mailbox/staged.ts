/** Tests of cluster/staged.ts: a command is the same after unpacking. */
import fc from 'fast-check'
import { test } from 'tap'
import { packStaged, unpackStaged } from '../../../cluster/mailbox/staged.ts'

test('staged: body and blobs come back, whatever they hold', async (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 4 }), (body, blobs) => {
      const back = unpackStaged(packStaged({ body, blobs }))
      return (
        JSON.stringify(back?.body) === JSON.stringify(body) &&
        back?.blobs.length === blobs.length &&
        blobs.every((blob, place) => Buffer.compare(blob, back.blobs[place] ?? Buffer.alloc(0)) === 0)
      )
    }),
  )
  t.match(packStaged({ body: { a: 'ü' }, blobs: [Buffer.from('xyz')] }).toString(), /^10 3\n\{"a":"ü"\}xyz$/)
  t.same(unpackStaged(packStaged({ body: undefined })), { body: null, blobs: [] })
})

test('staged: what is cut off or no form of ours is told', async (t) => {
  const bytes = packStaged({ body: { a: 1 }, blobs: [Buffer.from('xyz')] })
  t.equal(unpackStaged(bytes.subarray(0, -1)), null)
  t.equal(unpackStaged(Buffer.concat([bytes, Buffer.from('x')])), null)
  for (const text of ['', '{}', '\n', '-1\n', 'x\n{}', '1\n{']) t.equal(unpackStaged(Buffer.from(text)), null, text)
})
