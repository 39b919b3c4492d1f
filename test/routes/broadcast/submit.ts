/** submit - content is written ahead under the name of its command: so a commit that misses it knows whom to refuse. */
import t from 'tap'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { homeShard } from '../../../cluster/id.ts'
import type { Ask } from '../../../cluster/work.ts'
import type { BroadcastBody } from '../../../schemas/broadcast.ts'
import { makeSecrets } from '../../../src/process/secrets.ts'
import { submitBroadcast } from '../../../src/routes/broadcast/submit.ts'
import { prepareBroadcast } from '../../../src/sending/broadcast/prepare.ts'
import type { ContentStore } from '../../../src/store/content.ts'
import { ringOf } from '../../support/world/rings.ts'
import { LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

t.test('submit: content written ahead has the name of its command, and is removed if that is refused', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const secrets = makeSecrets(ringOf('b'.repeat(64)))
  const content = {
    streamId: live.streamId,
    from: 'news@acme.example',
    subject: 'x',
    text: 'y',
    headers: {},
    tag: null,
  }
  const messages = [{ to: 'ada@example.net', substitutions: {}, metadata: {} }]
  const prepared = prepareBroadcast({ ...content, metadata: {}, messages } as BroadcastBody, {
    addressHmac: (address) => secrets.addressHmac(accountId, address),
    tagHash: (tag) => tag,
  })
  const names: string[] = []
  const removed: string[] = []
  const redis: ContentStore = {
    writeContent: async (_shard, values) => names.push(...values.map(({ key }) => key)) > 0,
    readContent: async () => null,
    readField: async () => undefined,
    removeContent: async (_shard, keys) => void removed.push(...keys),
  }
  const asked: string[] = []
  const ask: Ask = async (shard, { cmdId }) => {
    t.equal(shard, homeShard(accountId))
    asked.push(cmdId)
    return { kind: 'unavailable' }
  }
  const key = {
    accountId,
    serverId: live.serverId,
    mode: 'live',
    hash: LIVE_KEY,
    tokenId: '',
    kind: 'server',
    defaultStreamId: '',
  } as const
  await submitBroadcast(
    {
      ask,
      read: readerOf(world).read,
      newCmdId: () => newCmdId(NOW_MS, Math.random),
      secrets,
      billing: false,
      hasRelay: () => false,
      outgoing: { redis },
    },
    { key, idempotencyKey: null, streamId: live.streamId, prepared },
  )
  t.equal(asked.length, 1)
  t.equal(names.length, 3, 'head, body and one bucket')
  for (const name of names) t.ok(name.includes(asked[0] ?? '-'), name)
  t.same(removed, names)
})
