/** Tests of cluster/pack.ts: how a real Redis reads the bytes of a commit. */
import t from 'tap'
import type { Op } from '../../../cluster/behaviour.ts'
import { commitOf, held, openRedis, openStore, set } from '../../support/store/redis-shard.ts'

t.test('pack: values of every size are written unchanged, in a commit of any number of them', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 13)
  const key = '{s013}:values'
  const values = [0, 1, 255, 256, 257, 5_000, 70_000].map((size) => Buffer.alloc(size, '\r\n\0\xffx', 'latin1'))
  const args = values.flatMap((value) => [`v${value.length}`, value, `t${value.length}`, 'ü'.repeat(value.length)])
  const text: Op = { key: '{s013}:text', write: 'SET', args: [values[4] as Buffer, 'PXAT', '9999999999999'] }
  const many = Array.from({ length: 17 }, (_, n): Op => {
    return { key: `{s013}:many${n}`, write: 'HSET', args: Array.from({ length: 4_000 }, (_, at) => String(at)) }
  })
  for (const [seq, others] of [[], many].entries()) {
    const ops: Op[] = [...others, { key, write: 'HSET', args }, text, set(shard, seq)]
    t.same(await store.commit(commitOf(shard, seq, { ops })), { kind: 'ok' })
    for (const value of values) {
      t.ok(value.equals((await store.views.hgetBuffer(key, `v${value.length}`)) as Buffer), `${value.length} bytes`)
      t.equal(await store.views.hget(key, `t${value.length}`), 'ü'.repeat(value.length))
    }
    t.ok(values[4]?.equals((await store.views.getBuffer(text.key)) as Buffer))
    await store.views.del(key, text.key)
  }
})
