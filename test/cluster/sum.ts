/** sum - a changed bit of a stored value is an error, and a value without a sum is taken as it is. */
import { crc32 } from 'node:zlib'
import t from 'tap'
import { DamagedValue, damagedValues, unlessDamaged, withoutSum, withSum } from '../../cluster/sum.ts'

t.test('sum: values are packed and back, readable in front of their sum', async (t) => {
  for (const text of ['', '[0]', 'ada@example.com', '["Größe ✓"]', 'x'.repeat(10_000), '~~', 'a~~abcdef']) {
    const stored = withSum(text)
    t.ok(stored.startsWith(text))
    t.equal(stored.length, text.length + 8)
    t.match(stored.slice(-8), /^~~[\w-]{6}$/)
    t.equal(withoutSum(stored, 'test'), text)
  }
})

t.test('sum: every changed bit of a value is found, in its text and in its sum', async (t) => {
  const stored = Buffer.from(withSum('["Your order",0,"tag",{"key":"välue"}]'))
  let found = 0
  for (let bit = 0; bit < stored.length * 8; bit += 1) {
    const changed = Buffer.from(stored)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    try {
      withoutSum(changed.toString(), 'test')
      t.fail(`bit ${bit} was not found`)
    } catch (error) {
      if (error instanceof DamagedValue) found += 1
    }
  }
  t.equal(found, stored.length * 8)
  t.ok((damagedValues().get('test') ?? 0) >= found, 'they are counted')
})

t.test('sum: a value of an earlier release has none', async (t) => {
  for (const text of ['[0]', '513 202611', 'ada@example.com', '{"minute":[1,2]}', '', '8'])
    t.equal(withoutSum(text, 'test'), text)
})

t.test('sum: a value of an earlier release may have a mark at the place of a sum', async (t) => {
  const texts = ['["a~12345"]', '["a~123456]', '["~~abcd"]', '["~abcd"]', '{"name":"~Anna"}', '{"a":"~~~~~~~~~"}']
  for (const text of [...texts, 'x~y@a.io', 'a~~b@c.io', 'x~@ab.de']) {
    t.equal(withoutSum(text, 'test'), text)
    t.equal(withoutSum(withSum(text), 'test'), text)
  }
})

t.test('sum: each changed bit is found, whatever the letters of the sum', async (t) => {
  let missed = 0
  for (let n = 0; n < 2_000; n += 1) {
    const stored = Buffer.from(withSum(`[${n}]`))
    for (let bit = (stored.length - 8) * 8; bit < stored.length * 8; bit += 1) {
      const changed = Buffer.from(stored)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      if (unlessDamaged(() => withoutSum(changed.toString(), 'test')) !== null) missed += 1
    }
  }
  t.equal(missed, 0)
})

t.test('sum: a sweep continues past a damaged value, and past no other error', async (t) => {
  t.equal(
    unlessDamaged(() => withoutSum('[1]~~AAAAAA', 'test')),
    null,
  )
  t.equal(
    unlessDamaged(() => 7),
    7,
  )
  t.throws(() => unlessDamaged(() => JSON.parse('{')), SyntaxError)
})

t.test('sum: short and long texts have the CRC32 of zlib', async (t) => {
  for (const text of ['', 'a', '["Your order"]', 'é', 'x'.repeat(128), 'y'.repeat(129), `${'z'.repeat(127)}é`]) {
    const bits = crc32(text).toString(2).padStart(32, '0').padEnd(36, '0')
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const expected = (bits.match(/.{6}/g) ?? []).map((six) => letters[Number.parseInt(six, 2)]).join('')
    t.equal(withSum(text).slice(-6), expected, `${text.length} characters`)
  }
})
