/** slot-map - the location of a shard according to nodes of a cluster. */
import t from 'tap'
import {
  addressFrom,
  COMMON_SLOT,
  computeSlot,
  parseNodes,
  SHARD_SLOTS,
  SlotMap,
} from '../../../cluster/slots/slot-map.ts'

const A = 'aa 127.0.0.1:7001@17001 master - 0 0 1 connected 0-8191 [93-<-bb]'
const B = 'bb 127.0.0.1:7002@17002,b.example master - 0 0 2 connected 8192-16383'
const REPLICA = 'cc ::1:7003@17003 slave aa 0 0 1 connected'
const LINES = [`${A.replace('master', 'myself,master').replace('127.0.0.1:7001', ':7001')}`, B, REPLICA].join('\n')

t.test('slot-map: slots of keys are those of Redis', async (t) => {
  // redis-cli: CLUSTER KEYSLOT.
  t.same(['{s000}:', '{s001}:x', '{cl}:conf', '{123456789}:'].map(computeSlot), [12234, 16363, 13139, 12739])
  t.equal(SHARD_SLOTS.length, 256)
  t.equal(COMMON_SLOT, 13139)
})

t.test('slot-map: lines of nodes; a node that does not know its host has that of the asked one', async (t) => {
  const nodes = parseNodes(`${LINES}\ndd :0@0 noaddr,master - 0 0 0 connected\n`, '127.0.0.1:7001')
  t.same(
    nodes.map(({ address, isPrimary, epoch, ranges }) => [address, isPrimary, epoch, ranges]),
    [
      ['127.0.0.1:7001', true, 1, [[0, 8191]]],
      ['127.0.0.1:7002', true, 2, [[8192, 16383]]],
      ['::1:7003', false, 1, []],
    ],
  )
  t.equal(nodes[2]?.primaryId, 'aa')
  t.equal(addressFrom(':7005', '10.0.0.1:7001'), '10.0.0.1:7005')
  t.equal(addressFrom('10.0.0.2:7005', '10.0.0.1:7001'), '10.0.0.2:7005')
})

t.test('slot-map: the higher epoch has a slot, whichever node reports it later', async (t) => {
  const map = new SlotMap()
  t.notOk(map.isWhole)
  t.ok(map.take(parseNodes(LINES, '127.0.0.1:7001'), '127.0.0.1:7001'))
  t.ok(map.isWhole)
  t.equal(map.shardsOf('127.0.0.1:7001').length + map.shardsOf('127.0.0.1:7002').length, 256)
  t.notOk(map.take(parseNodes(LINES, '127.0.0.1:7001'), '127.0.0.1:7001'), 'nothing new')
  const promoted = 'cc 127.0.0.1:7003@17003 master - 0 0 3 connected 0-8191'
  t.ok(
    map.take(
      parseNodes([A.replace(' 0-8191 [93-<-bb]', ''), B, promoted].join('\n'), '127.0.0.1:7002'),
      '127.0.0.1:7002',
    ),
  )
  t.equal(map.shardsOf('127.0.0.1:7001').length, 0)
  const isolated = [A, B, promoted.replace('master - 0 0 3 connected 0-8191', 'slave aa 0 0 1 connected')].join('\n')
  t.notOk(map.take(parseNodes(isolated, '127.0.0.1:7001'), '127.0.0.1:7001'), 'who was cut off moves nothing back')
  t.ok(map.shardsOf('127.0.0.1:7003').length > 0)
})

t.test(
  'slot-map: a node that was cut off before another joined takes nothing back; a node that left holds nothing',
  async (t) => {
    const map = new SlotMap()
    const came = 'dd 127.0.0.1:7004@17004 master - 0 0 4 connected 0-8191'
    const bare = A.replace(' 0-8191 [93-<-bb]', '')
    map.take(parseNodes([bare, B, came].join('\n'), '127.0.0.1:7002'), '127.0.0.1:7002')
    t.notOk(
      map.take(parseNodes([A, B].join('\n'), '127.0.0.1:7001'), '127.0.0.1:7001'),
      'it never heard of the new one',
    )
    t.ok(map.shardsOf('127.0.0.1:7004').length > 0)
    map.take(parseNodes([bare, B].join('\n'), '127.0.0.1:7002'), '127.0.0.1:7002')
    t.ok(map.take(parseNodes([A, B].join('\n'), '127.0.0.1:7001'), '127.0.0.1:7001'), 'nobody knows of it any more')
  },
)
