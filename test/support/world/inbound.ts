/** inbound - an inbound stream in a `World`, and mail for it. */
import { idOfEntry, shortId } from '../../../cluster/id.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import type { ParseOutcome, ParseResult } from '../../../src/actors/inbound/parse-job.ts'
import { parseOutcome, prepareParse } from '../../../src/actors/inbound/parsed.ts'
import { type ReceiveBody, type ReceiveReply, receive } from '../../../src/actors/inbound/receive.ts'
import { createStream } from '../../../src/actors/server/create-stream.ts'
import { receivedBlocksKey, receivedKey, receivedSegmentsKey, receivedStateKey } from '../../../src/state/keys.ts'
import { type PackedRow, unpackReceivedBlock } from '../../../src/state/received/block.ts'
import { newObjectId } from '../../../src/state/received/content-head.ts'
import type { StreamState } from '../../../src/state/stream.ts'
import { hmacOf, LIVE_KEY, type Tenant } from './tenant.ts'
import type { World } from './turn.ts'

export const SENDER = 'Ada@example.net'

/** Makes an inbound stream on the tenant's live server. */
export function makeInboundStream(world: World, { accountId, live }: Tenant, name = 'Mail'): string {
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY }
  const reply = world.run(createStream, { ...order, streamKind: 'inbound', name })
  if (reply.kind !== 'stream') throw new Error(`No inbound stream: ${JSON.stringify(reply)}`)
  return (reply.stream as StreamState).streamId
}

/** A mail for one recipient, or for several by their mailbox hashes. */
export function makeReceive(
  world: World,
  { accountId, live }: Tenant,
  {
    streamId,
    hashes = [null],
    ...changes
  }: { streamId: string; hashes?: readonly (string | null)[] } & Partial<ReceiveBody>,
): ReceiveBody {
  return {
    accountId,
    sizeBytes: 1_000,
    sender: { hmac: hmacOf(SENDER), address: SENDER },
    session: { ip: '192.0.2.1', helo: 'mail.example.net' },
    key: 'a sealed key',
    recipients: hashes.map((mailboxHash) => ({
      serverId: live.serverId,
      streamId,
      spelledId: null,
      mailboxHash,
      plusHash: mailboxHash === null ? null : hmacOf(mailboxHash).slice(0, 8),
      objectId: newObjectId(world.nowMs, () => world.random()),
    })),
    ...changes,
  }
}

/** Receives a mail. Returns the ids of its messages. Throws if it was refused. */
export function receiveMail(world: World, tenant: Tenant, of: Parameters<typeof makeReceive>[2]): readonly string[] {
  const reply: ReceiveReply = world.run(receive, makeReceive(world, tenant, of))
  if (reply.kind !== 'received') throw new Error(`Not received: ${reply.why}`)
  return reply.messageIds
}

/** The possible results of parsing. */
export function makeParsed(world: World, changes: Partial<ParseResult> = {}): ParseResult {
  return {
    parsedId: newObjectId(world.nowMs, () => world.random()),
    hasText: true,
    hasHtml: false,
    attachmentCount: 2,
    parseIssue: null,
    from: { hmac: hmacOf('header@example.org'), address: 'header@example.org', name: 'Header' },
    subject: 'Hello',
    dateMs: 0,
    named: { hashes: 'abcdefgh', isWhole: true },
    check: null,
    ...changes,
  }
}

/** The rows of a server's received messages in its log and in blocks, oldest first. Skips damaged blocks. */
export function receivedRows(world: World, serverId: string): (PackedRow & { readonly isPacked: boolean })[] {
  const { shard } = world
  return [...world.sorted(receivedSegmentsKey(shard, serverId)).keys()].flatMap((segment) => {
    const blocks = [...world.sorted(receivedBlocksKey(shard, serverId, segment))].sort(
      ([, one], [, other]) => one - other,
    )
    const packed = blocks.flatMap(([block]) => unlessDamaged(() => unpackReceivedBlock(block)) ?? [])
    const standings = world.hash(receivedStateKey(shard, serverId, segment))
    const log = world.stream(receivedKey(shard, serverId, segment)).map(({ id, fields: [, entry = ''] }) => {
      return { entryId: id, entry, standing: standings.get(shortId(idOfEntry(id, shard))) ?? null, isPacked: false }
    })
    return [...packed.map((row) => ({ ...row, isPacked: true })), ...log]
  })
}

/** Claims the oldest mail that waits to be parsed and ends it. Out: its item. */
export function parseNext(world: World, outcome: ParseOutcome | null): string {
  const due = world.deliveries().find(({ lane, atMs }) => lane.startsWith('parse/') && atMs <= world.nowMs)
  if (due === undefined) throw new Error('Nothing waits to be parsed')
  const claim = world.claim(prepareParse, due)
  if (claim === null) throw new Error('It is parsed already')
  world.end(parseOutcome, claim, outcome)
  return due.item
}
