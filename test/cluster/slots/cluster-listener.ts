/** Tests of cluster/slots/cluster-listener.ts: replies of a primary that loses a shard before replicas have them. */
import { test } from 'tap'
import { ClusterListener } from '../../../cluster/slots/cluster-listener.ts'
import type { ShardNode } from '../../../cluster/slots/shard-node.ts'

const A = '127.0.0.1:7001'

/** A listener at one primary that holds shards, which may change. */
function setUp(isGated: boolean) {
  const shards = new Map([[A, [0, 1]]])
  const heard: string[] = []
  const waiting: ((isKept: boolean) => void)[] = []
  let tell = (_text: string): void => undefined
  const node = {
    name: A,
    isGated,
    kept: () => new Promise<boolean>((resolve) => waiting.push(resolve)),
    store: {
      tell: (_worker: string, _key: () => string, listener: (text: string) => void) => {
        tell = listener
        return { begin: () => undefined, close: () => undefined }
      },
    },
  } as unknown as ShardNode
  const ears = { bells: () => undefined, replies: (text: string) => void heard.push(text) }
  const places = { shardsOf: (name: string) => shards.get(name) ?? [] }
  const all = { ...ears, joined: () => undefined, released: () => undefined }
  const listener = new ClusterListener('w', all, places)
  listener.arrange(new Map([[A, node]]), null)
  return { shards, heard, waiting, tell: (text: string) => tell(text) }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('cluster-listener: replies of a primary are passed on when replicas have their commits', async (t) => {
  const { heard, tell, waiting } = setUp(true)
  tell('one')
  await settled()
  t.same(heard, [])
  waiting.shift()?.(true)
  await settled()
  t.same(heard, ['one'])
  tell('two')
  waiting.shift()?.(false)
  await settled()
  t.same(heard, ['one'], 'none has it')
})

test('cluster-listener: not if the primary has lost a shard meanwhile, whose commits its replicas lack', async (t) => {
  const { heard, shards, tell, waiting } = setUp(true)
  tell('one')
  shards.set(A, [0, 2])
  waiting.shift()?.(true)
  await settled()
  t.same(heard, [])
  tell('two')
  shards.set(A, [0, 2, 3])
  waiting.shift()?.(true)
  await settled()
  t.same(heard, ['two'], 'a shard that it got since then is no reason')
})
