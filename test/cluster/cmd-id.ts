/** Tests of cluster/cmd-id.ts. */
import { test } from 'tap'
import { msOfCmdId, newCmdId } from '../../cluster/cmd-id.ts'

test('cmd-id: eighteen characters that begin with the time', async (t) => {
  for (const nowMs of [0, 1, 1_700_000_000_123, 2_821_109_907_455]) {
    const cmdId = newCmdId(nowMs, () => 0.5)
    t.match(cmdId, /^[0-9a-z]{18}$/)
    t.equal(msOfCmdId(cmdId), nowMs)
  }
})

test('cmd-id: later ones sort later, equal times differ by chance', async (t) => {
  t.ok(newCmdId(1_700_000_000_001, () => 0) > newCmdId(1_700_000_000_000, () => 0.999_999))
  t.not(
    newCmdId(5, () => 0.1),
    newCmdId(5, () => 0.2),
  )
  t.equal(newCmdId(5, () => 0).length, newCmdId(5, () => 0.999_999_999).length)
})
