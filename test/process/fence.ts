/** fence - when work may be finished. */

import t from 'tap'
import {
  createFence,
  HEARTBEAT_AGE_MAX_MS,
  markDisconnected,
  markHeartbeat,
  mayFinish,
  monotonicMs,
} from '../../src/process/fence.ts'

t.test('fence: closed before the first heartbeat, open for eight seconds after its sending', async (t) => {
  const fence = createFence()
  t.notOk(mayFinish(fence, 0))
  t.notOk(mayFinish(fence))
  markHeartbeat(fence, 1000)
  t.ok(mayFinish(fence, 1000))
  t.ok(mayFinish(fence, 1000 + HEARTBEAT_AGE_MAX_MS))
  t.notOk(mayFinish(fence, 1001 + HEARTBEAT_AGE_MAX_MS))
})

t.test('fence: a closed connection closes it at once, the next heartbeat opens it', async (t) => {
  const fence = createFence()
  markHeartbeat(fence, 1000)
  markDisconnected(fence)
  t.notOk(mayFinish(fence, 1000))
  markHeartbeat(fence, 2000.7)
  t.ok(mayFinish(fence, 2000))
})

t.test('fence: the clock never goes back', async (t) => {
  const first = monotonicMs()
  t.ok(Number.isInteger(first))
  t.ok(monotonicMs() >= first)
})
