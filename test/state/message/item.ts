/** item - names there and back, and the lane of a recipient. */

import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { itemPrefix, itemSuffix, laneOf, parseAttemptItem } from '../../../src/state/message/item.ts'

const SERVER = '0193b2a4-6c00-7017-8000-0123456789ab'
const MESSAGE = '0193b2a4-6c01-7017-bfff-ffffffffffff'

t.test('item: everything about a delivery is in its name', async (t) => {
  for (const [recipient, recipients, hasAttachments, broadcastStreamId, sendAtMs] of [
    [0, 1, false, null, null],
    [49, 50, true, null, null],
    [0, 1, true, SERVER, null],
    [0, 1, false, null, 1_800_000_000_000],
    [3, 5, true, SERVER, Number.parseInt('mhssass0', 36)],
  ] as const) {
    const short = shortId(MESSAGE)
    const name =
      itemPrefix(SERVER, '202611-0-64', short) +
      itemSuffix(recipient, { recipients, hasAttachments, broadcastStreamId, sendAtMs })
    t.same(parseAttemptItem(name), {
      serverId: SERVER,
      segment: '202611-0-64',
      messageId: MESSAGE,
      short,
      recipient,
      recipients,
      hasAttachments,
      broadcastStreamId,
      sendAtMs,
    })
  }
})

t.test('item: lanes', async (t) => {
  t.equal(laneOf('deliver', 'example.net'), 'deliver/example.net')
  t.equal(laneOf('relay', 'example.net'), 'relay')
  t.equal(laneOf('simulate', 'example.net'), 'simulate')
})
