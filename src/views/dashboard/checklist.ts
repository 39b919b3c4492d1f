/**
 * checklist - the steps that every new account has to take, and which of them an account has completed
 *
 * Keys: `account:<id>`, `servers:<account>`, `server:<id>`, `segments:<server>`, `sending:<account>`,
 * `members:<account>`
 *
 * Spec member.checklist
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { homeShard } from '../../../cluster/id.ts'
import type { Checklist } from '../../../schemas/dashboard/account.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { membersFact, unpackMember } from '../../state/dashboard/member.ts'
import { sendingRows } from '../../state/domain.ts'
import { segmentsKey, sendingKey, serversKey } from '../../state/keys.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'

/** Servers that are looked at. */
const SERVERS_MAX = 100

/** Null when the store did not answer. */
export async function readChecklist(read: Reader, accountId: string): Promise<Checklist | null> {
  const shard = homeShard(accountId)
  const servers = await readServers(read, shard, accountId)
  if (servers === null) return null
  const seen = await read(shard, [
    entityFact(shard, accountRef(accountId)),
    { read: 'hash', key: sendingKey(shard, accountId) },
    membersFact(shard, accountId),
  ])
  const segments = await read(
    shard,
    servers.map(({ serverId }): FactOf<'sorted'> => {
      return { read: 'sorted', key: segmentsKey(shard, serverId), min: 0, max: Number.MAX_SAFE_INTEGER, count: 1 }
    }),
  )
  if (seen === null || segments === null) return null
  const [account, sending, members] = seen
  const administrators = [...members.values()].filter((packed) => unpackMember(packed).level === 'a')
  const hasSent = (of: (server: ServerState) => boolean) =>
    servers.some((server, at) => of(server) && (segments[at]?.length ?? 0) > 0)
  return {
    message: hasSent(() => true),
    webhook: (parseState<AccountState>(account)?.webhookServers ?? []).length > 0,
    domain: sendingRows(sending, false).size > 0,
    liveKey: hasSent(({ mode }) => mode === 'live'),
    secondAdministrator: administrators.length > 1,
  }
}

/** The servers of an account that were not removed; null if the store did not answer. */
export async function readServers(read: Reader, shard: number, accountId: string): Promise<ServerState[] | null> {
  const all = { read: 'sorted', min: 0, max: Number.MAX_SAFE_INTEGER, count: SERVERS_MAX } as const
  const found = await read(shard, [{ ...all, key: serversKey(shard, accountId) }])
  if (found === null) return null
  const ids = found[0].map(([id]) => id)
  const states =
    ids.length === 0
      ? []
      : await read(
          shard,
          ids.map((id) => entityFact(shard, serverRef(id))),
        )
  if (states === null) return null
  return states.flatMap((state) => {
    const server = parseState<ServerState>(state)
    return server === null || server.removedAtMs !== undefined ? [] : [server]
  })
}
