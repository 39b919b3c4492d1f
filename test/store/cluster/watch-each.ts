/** watch-each - the fault of a Redis that holds nothing any more is ignored. */
import { Redis } from 'ioredis'
import t from 'tap'
import { watchEach } from '../../../src/store/cluster/watch-each.ts'
import type { OneWatch } from '../../../src/store/store-watch.ts'
import { until } from '../../support/machine/until.ts'

const client = new Redis({ lazyConnect: true })
const ONE: OneWatch = {
  share: 0,
  lack: null,
  fault: null,
  isUp: true,
  replicas: 0,
  replicasWanted: 0,
  clockOffMs: 0,
  nodes: [],
  stop: () => undefined,
}

t.test('watch: a store that is dropped with a fault, or reports it too late, delays nothing', async (t) => {
  const names = new Set(['a', 'b'])
  const tellers = new Map<string, (isFaulty: boolean) => void>()
  const told: boolean[] = []
  const watch = await watchEach({
    clients: () => new Map([...names].map((name) => [name, () => client])),
    watch: async (name, _, onFault) => {
      tellers.set(name, onFault)
      return ONE
    },
    onFault: (isFaulty) => told.push(isFaulty),
  })
  t.teardown(() => watch.stop())
  tellers.get('a')?.(true)
  t.same(told, [true])
  names.delete('a')
  await until(() => told.length > 1, 5_000)
  t.same(told, [true, false])
  tellers.get('a')?.(true)
  t.same(told, [true, false], 'a look that was under way')
  tellers.get('b')?.(true)
  t.same(told, [true, false, true])
})
