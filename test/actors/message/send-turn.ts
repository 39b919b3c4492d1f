/** send-turn - the same names for the same ids, and other names if one of the ids differs. */

import t from 'tap'
import { sendNames } from '../../../src/actors/message/send-turn.ts'
import { accountOwner, accountRef } from '../../../src/state/account.ts'
import { serverOwner, serverRef } from '../../../src/state/server.ts'
import { streamRef } from '../../../src/state/stream.ts'

const IDS = { accountId: 'a', serverId: 's', defaultStreamId: 'd' }

t.test('send-names: entities and owners of the ids, found again', async (t) => {
  const names = sendNames(IDS)
  t.same(names, {
    account: accountRef('a'),
    server: serverRef('s'),
    defaultStream: streamRef('d'),
    accountOwner: accountOwner('a'),
    serverOwner: serverOwner('s'),
    entities: [accountRef('a'), serverRef('s'), streamRef('d')],
    counters: [accountOwner('a'), serverOwner('s')],
  })
  t.equal(sendNames({ ...IDS }), names)
})

t.test('send-names: names of other ids are not used', async (t) => {
  for (const other of [{ accountId: 'b' }, { serverId: 'r' }, { defaultStreamId: 'e' }]) {
    const ids = { ...IDS, ...other }
    const { account, server, defaultStream } = sendNames(ids)
    t.same([account.id, server.id, defaultStream.id], [ids.accountId, ids.serverId, ids.defaultStreamId])
  }
})
