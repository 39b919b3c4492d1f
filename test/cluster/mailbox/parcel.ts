/** Tests of cluster/parcel.ts: commands are the same after unpacking. */
import fc from 'fast-check'
import { test } from 'tap'
import { packCommand, packParcel, readParcelId, unpackParcel } from '../../../cluster/mailbox/parcel.ts'

const COMMAND = fc.record({
  name: fc.string(),
  cmdId: fc.string(),
  body: fc.jsonValue(),
  blobs: fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 3 }),
})

test('parcel: commands come back in their order, whatever they hold', async (t) => {
  fc.assert(
    fc.property(fc.array(COMMAND, { minLength: 1, maxLength: 5 }), fc.nat(), (commands, deadlineMs) => {
      const packed = packParcel(
        'p',
        commands.map((command, n) => packCommand(command, deadlineMs + n)),
      )
      const back = unpackParcel(packed) ?? []
      return (
        back.length === commands.length &&
        back.every(({ command, deadlineMs: at }, n) => {
          const { blobs = [], ...said } = commands[n]!
          const isSaid = JSON.stringify({ ...command, blobs: 0 }) === JSON.stringify({ ...said, blobs: 0 })
          const areSame = blobs.every((blob, place) => Buffer.compare(blob, command.blobs[place]!) === 0)
          return isSaid && areSame && blobs.length === command.blobs.length && at === deadlineMs + n
        })
      )
    }),
  )
  const command = { name: 'x', cmdId: 'c', body: { a: 'ü' }, blobs: [Buffer.from('xyz')] }
  t.equal(packParcel('p7', [packCommand(command, 7)]).toString(), 'p7 26 3\n[["x","c",7,1,{"a":"ü"}]]xyz')
  t.same(unpackParcel(packParcel('p', [packCommand({ name: 'x', cmdId: 'c', body: undefined }, 7)])), [
    { command: { name: 'x', cmdId: 'c', body: null, blobs: [] }, deadlineMs: 7, bytes: 20 },
  ])
})

test('parcel: a blob that is kept does not keep its parcel', async (t) => {
  const blobs = [Buffer.from('small'), Buffer.alloc(1_000_000)]
  const packed = packParcel('p', [packCommand({ name: 'x', cmdId: 'c', body: 1, blobs }, 7)])
  t.equal(readParcelId(packed), 'p')
  const [kept] = unpackParcel(packed)?.[0]?.command.blobs ?? []
  t.same(kept, blobs[0])
  t.ok((kept?.buffer.byteLength ?? packed.length) < 100_000)
})

test('parcel: what is cut off or no form of ours is told', async (t) => {
  const bytes = packParcel('p', [packCommand({ name: 'x', cmdId: 'c', body: 1, blobs: [Buffer.from('xyz')] }, 7)])
  t.equal(unpackParcel(bytes.subarray(0, -1)), null)
  t.equal(unpackParcel(Buffer.concat([bytes, Buffer.from('x')])), null)
  for (const list of [
    '',
    '[]',
    '{}',
    '[1]',
    '[[1]]',
    '[["x","c",7,1,2]]',
    '[["x","c",7,-1,2]]',
    '[["x","c",null,0,2]]',
    '[["x",5,7,0,2]]',
    '[["x"',
  ])
    t.equal(unpackParcel(Buffer.from(`p ${list.length}\n${list}`)), null, list)
  for (const text of ['', '{}', '\n', 'p', 'p \n', 'p -1\n', 'p x\n{}', 'p 0\n'])
    t.equal(unpackParcel(Buffer.from(text)), null, text)
  for (const text of ['', 'p', '\n']) t.equal(readParcelId(Buffer.from(text)), '')
})
