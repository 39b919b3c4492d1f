/** raw-memory - one block of memory for all, in parts that never overlap. */
import t from 'tap'
import { RawMemory } from '../../src/reception/raw-memory.ts'

t.test('raw-memory: a returned part is assigned again, and two never share a byte', async (t) => {
  const memory = new RawMemory(100)
  const [one, two, three] = [memory.take(40), memory.take(30), memory.take(30)]
  t.ok(one.buffer === two.buffer && two.buffer === three.buffer)
  one.fill(1)
  two.fill(2)
  three.fill(3)
  for (const [part, value] of [
    [one, 1],
    [two, 2],
    [three, 3],
  ] as const)
    t.ok(part.every((byte) => byte === value))
  memory.giveBack(two)
  const again = memory.take(20)
  t.same([again.buffer === one.buffer, again.byteOffset], [true, 40])
  const alone = memory.take(11)
  t.not(alone.buffer, one.buffer, 'no gap is large enough')
  memory.giveBack(alone)
  t.equal(memory.take(10).byteOffset, 60, 'memory of its own was no part')
  memory.giveBack(one)
  t.equal(memory.take(40).byteOffset, 0)
  t.equal(memory.take(0).length, 0)
})

t.test('raw-memory: many mails of any size take no more than there is', async (t) => {
  const memory = new RawMemory(1_000)
  const held: Uint8Array[] = []
  let seed = 7
  const buffers = new Set<unknown>()
  for (let n = 0; n < 5_000; n += 1) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    if (held.length > 4) memory.giveBack(held.splice(seed % held.length, 1)[0] as Uint8Array)
    const part = memory.take(1 + (seed % 90))
    buffers.add(part.buffer)
    held.push(part)
  }
  t.equal(buffers.size, 1)
})
