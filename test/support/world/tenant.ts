/** tenant - an account with a live and a test server in a `World`, and messages to send on them. */

import { createHash } from 'node:crypto'
import { createAccount } from '../../../src/actors/account/create-account.ts'
import { accept } from '../../../src/actors/message/accept.ts'
import type { SendBody, SendItem, SendRecipient, SendReply } from '../../../src/actors/message/send.ts'
import type { AccountState } from '../../../src/state/account.ts'
import { accountRef } from '../../../src/state/account.ts'
import type { OperatorAct } from '../../../src/state/audit.ts'
import { sendingKey } from '../../../src/state/keys.ts'
import type { RecipientKind } from '../../../src/state/message/log-entry.ts'
import { serverRef } from '../../../src/state/server.ts'
import { streamRef } from '../../../src/state/stream.ts'
import type { RunOptions, World } from './turn.ts'

export const LIVE_KEY = hex('live key')
export const TEST_KEY = hex('test key')
export const ACCOUNT_KEY = hex('account key')
/** An operator who orders. */
export const BY: OperatorAct = { actor: '01a1f8d8-8300-7000-8000-000000000001', act: 'patchAccount', note: null }
/** A sending domain that is verified in every tenant. */
export const SENDING_DOMAIN = 'acme.example'

export interface Tenant {
  readonly accountId: string
  readonly live: { readonly serverId: string; readonly streamId: string }
  readonly test: { readonly serverId: string; readonly streamId: string }
}

/** Makes an account whose live and test server may send from `SENDING_DOMAIN`. */
export function makeTenant(world: World): Tenant {
  const { accountId, servers } = world.run(createAccount, {
    name: 'Acme',
    status: 'active',
    accountKey: { hash: ACCOUNT_KEY, prefix: 'ak_00000000' },
    operatorKey: null,
    servers: [
      { name: 'Live', mode: 'live', key: { hash: LIVE_KEY, prefix: 'sk_00000000' } },
      { name: 'Test', mode: 'test', key: { hash: TEST_KEY, prefix: 'sk_test_00000000' } },
    ],
  })
  const [live, test] = servers
  if (live === undefined || test === undefined) throw new Error('Servers were not made')
  world.keys.set(sendingKey(world.shard, accountId), {
    type: 'hash',
    fields: new Map([[SENDING_DOMAIN, '["some domain",0,1]']]),
  })
  return { accountId, live, test }
}

/** Changes the tenant's account, server or stream as earlier commits would have. */
export function changeState(world: World, kind: 'account' | 'server' | 'stream', id: string, changes: object): void {
  const ref = { account: accountRef, server: serverRef, stream: streamRef }[kind](id)
  world.seedState(ref, { ...(world.states.get(`${kind}:${id}`) as object), ...changes })
}

export function accountState(world: World, tenant: Tenant): AccountState {
  return world.states.get(`account:${tenant.accountId}`) as AccountState
}

/** An HMAC as the edge would make it: 22 characters that follow from the address. */
export function hmacOf(text: string): string {
  return createHash('sha256').update(text.toLowerCase()).digest('base64url').slice(0, 22)
}

export function makeRecipient(address: string, kind: RecipientKind = 'to', name: string | null = null): SendRecipient {
  const domain = address.slice(address.indexOf('@') + 1)
  return { address, name, kind, domain, hmac: hmacOf(address) }
}

/** A message of one recipient, changed by `changes`. */
export function makeItem(changes: Partial<SendItem> = {}): SendItem {
  const address = `shop@${SENDING_DOMAIN}`
  return {
    streamId: null,
    from: { address, domain: SENDING_DOMAIN, name: 'Acme Shop', hmac: hmacOf(address) },
    recipients: [makeRecipient('ada@example.net')],
    subject: 'Your order',
    tag: null,
    tagHash: null,
    raw: null,
    metadata: {},
    headers: {},
    attachments: [],
    content: { parts: [{ part: 'body', chunks: 1, blob: 0 }], stored: null },
    builtBytes: null,
    sendAtMs: null,
    lane: 'deliver',
    ...changes,
  }
}

/** A send of the tenant's live server, or of its test server with `{ test: true }`. */
export function makeSend(tenant: Tenant, changes: Partial<SendBody> = {}): SendBody {
  const test = changes.test ?? false
  const { serverId, streamId } = test ? tenant.test : tenant.live
  return {
    accountId: tenant.accountId,
    serverId,
    test,
    keyHash: test ? TEST_KEY : LIVE_KEY,
    billing: false,
    defaultStreamId: streamId,
    source: 'a',
    idempotency: null,
    messages: [makeItem(test ? { lane: 'simulate' } : {})],
    batch: false,
    ...changes,
  }
}

export const BODY_BLOB = Buffer.from('\0\0\x01{"text":"Hello","html":null}')

/** Sends, with one blob as the body. */
export function send(
  world: World,
  tenant: Tenant,
  changes: Partial<SendBody> = {},
  options: RunOptions & { type?: typeof accept } = {},
): SendReply {
  return world.run(options.type ?? accept, makeSend(tenant, changes), { blobs: [BODY_BLOB], ...options })
}

/** Ids of the accepted messages. Throws with the code if the send was refused. */
export function acceptedIds(reply: SendReply): string[] {
  if (reply.kind !== 'accepted') throw new Error(`Send was refused: ${reply.code}`)
  return reply.messages.map(({ messageId }) => messageId)
}

function hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
