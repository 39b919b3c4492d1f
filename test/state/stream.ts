/** stream - the entity: each event and its effect on the state. */

import t from 'tap'
import {
  makeDefaultStream,
  makeStream,
  newStreamStaged,
  type StreamEvent,
  streamEntity,
} from '../../src/state/stream.ts'

const ID = '0193b2a4-6c00-7017-8000-0123456789ab'
const STREAM = makeStream({ streamId: ID, serverId: 's', kind: 'broadcast', name: 'News', createdAtMs: 5 })

t.test('stream: each event changes what it names', async (t) => {
  const cases: [StreamEvent, object][] = [
    [{ type: 'suppressing' }, { hasSuppressions: true }],
    [{ type: 'patched', changes: { name: 'Other' } }, { name: 'Other' }],
    [{ type: 'archived', archivedAtMs: 7 }, { archivedAtMs: 7 }],
    [{ type: 'paused', pausedAtMs: 7 }, { pausedAtMs: 7 }],
    [{ type: 'resumed' }, { pausedAtMs: null }],
    [{ type: 'paced', pacePerMinute: 9 }, { pacePerMinute: 9 }],
  ]
  const paused = { ...STREAM, pausedAtMs: 1 }
  for (const [event, changes] of cases) {
    t.same(streamEntity.apply(paused, event), { ...paused, ...changes }, event.type)
    t.equal(streamEntity.apply(null, event), null)
  }
  t.same(streamEntity.apply(null, { type: 'created', stream: STREAM }), STREAM)
})

t.test('stream: names that it takes', async (t) => {
  const of = { shard: 23, accountId: 'a' }
  const namesOf = (stream: typeof STREAM) => newStreamStaged(stream, of).ops[0]?.args
  t.same(namesOf(STREAM), ['stream/s/News', ID])
  t.same(namesOf({ ...STREAM, kind: 'inbound' }), ['stream/s/News', ID, 'inbound/s', ID])
  t.match(makeDefaultStream(ID, 's', 5), { kind: 'transactional', name: 'Transactional', isDefault: true })
})
