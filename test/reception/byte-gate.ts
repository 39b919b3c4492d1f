/** byte-gate - entries that fit enter, in order; an entry larger than the gate enters alone; a failed one leaves. */
import t from 'tap'
import { ByteGate } from '../../src/reception/byte-gate.ts'

/** A gate and its entries, which leave by name. */
function open(bytesMax: number) {
  const gate = new ByteGate(bytesMax)
  const inside = new Map<string, { leave(): void; fail(): void }>()
  const enter = (name: string, bytes: number): Promise<void> =>
    gate.hold(bytes, () =>
      new Promise<void>((leave, fail) => inside.set(name, { leave, fail: () => fail(new Error(name)) })).finally(() =>
        inside.delete(name),
      ),
    )
  const settled = () => new Promise<void>((done) => setImmediate(done))
  return { enter, inside, settled, names: () => [...inside.keys()] }
}

t.test('byte-gate: in order, as far as there is room', async (t) => {
  const { enter, inside, settled, names } = open(10)
  const all = [enter('a', 6), enter('b', 4), enter('c', 5), enter('d', 1)]
  await settled()
  t.same(names(), ['a', 'b'], 'd would fit, c came first')
  inside.get('b')?.leave()
  await settled()
  t.same(names(), ['a'])
  inside.get('a')?.leave()
  await settled()
  t.same(names(), ['c', 'd'])
  for (const one of inside.values()) one.leave()
  await Promise.all(all)
})

t.test('byte-gate: an entry too large for it enters alone, and a failed one leaves too', async (t) => {
  const { enter, inside, settled, names } = open(10)
  const huge = enter('huge', 99)
  const next = enter('next', 1)
  await settled()
  t.same(names(), ['huge'])
  inside.get('huge')?.fail()
  await t.rejects(huge, { message: 'huge' })
  await settled()
  t.same(names(), ['next'])
  inside.get('next')?.leave()
  await next
})

t.test('byte-gate: who is let in is given memory, and the next one the same', async (t) => {
  const gate = new ByteGate(10)
  const takes = async (bytes: number) => gate.hold(bytes, async (take) => take(bytes))
  const first = await takes(6)
  await t.rejects(
    gate.hold(10, async (take) => {
      take(10)
      throw new Error('It fails')
    }),
  )
  const second = await takes(10)
  t.same([second.buffer === first.buffer, second.byteOffset, second.length], [true, 0, 10])
})
