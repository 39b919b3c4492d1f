/**
 * send-turn - the states and counters that decide one send, looked up together and once.
 *
 * Every send of a server needs the same names several times: when its states are loaded, when it declares its reads,
 * and in its turn. One look here takes the place of one for each name.
 */

import type { Context, Facts, Ref, States } from '../../../cluster/behaviour.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../../state/account.ts'
import { memoize } from '../../state/memoize.ts'
import type { Limit } from '../../state/quota.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import type { SendBody } from './send.ts'

/** The names in a send on a server. */
export interface SendNames {
  readonly account: Ref
  readonly server: Ref
  /** The stream of messages without a stream. */
  readonly defaultStream: Ref
  readonly accountOwner: string
  readonly serverOwner: string
  /** All entities of a send on the default stream. */
  readonly entities: readonly Ref[]
  /** Both owners of counters. */
  readonly counters: readonly string[]
}

const remembered = memoize((): { names: SendNames | null } => ({ names: null }))

/** Everything that the steps look at. */
export interface SendTurn {
  readonly body: SendBody
  readonly names: SendNames
  readonly account: AccountState
  readonly server: ServerState
  /** One for each message; null if it names none. */
  readonly streams: readonly (StreamState | null)[]
  readonly accountCounters: AccountCounters | null
  readonly serverCounters: ServerCounters | null
  readonly limits: readonly Limit[]
  /** Number of emails in the request, one for each recipient. */
  readonly requested: number
  /** Places of the messages in the request; absent if the turn has all of them. */
  readonly places?: readonly number[]
  readonly states: States
  readonly facts: Facts
  readonly context: Context
  readonly cmdId: string
  readonly blobs: readonly Uint8Array[]
}

/** The names of a send. They follow from the three ids alone. */
export function sendNames(body: Pick<SendBody, 'accountId' | 'serverId' | 'defaultStreamId'>): SendNames {
  const slot = remembered(body.serverId)
  const { names } = slot
  if (names !== null && names.account.id === body.accountId && names.defaultStream.id === body.defaultStreamId)
    return names
  slot.names = makeNames(body)
  return slot.names
}

function makeNames({ accountId, serverId, defaultStreamId }: Parameters<typeof sendNames>[0]): SendNames {
  const [account, server, defaultStream] = [accountRef(accountId), serverRef(serverId), streamRef(defaultStreamId)]
  const counters = [accountOwner(accountId), serverOwner(serverId)] as const
  return {
    account,
    server,
    defaultStream,
    accountOwner: counters[0],
    serverOwner: counters[1],
    entities: [account, server, defaultStream],
    counters,
  }
}
