/**
 * login - whose key a client shows, and which stream its user name names
 *
 * The password is a server key, the same as for the API. The user name is the id of a stream of that server, or any
 * other text.
 *
 * Spec submission.login, submission.stream, key.revoke
 */

import { shardOf } from '../../../cluster/id.ts'
import { type KeyFinder, type ParsedKey, parseKey, type TokenKind } from '../../http/key.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { entityFact, parseState } from '../../views/entity.ts'
import type { Reader, ServerKey } from '../../views/key.ts'
import type { SmtpAnswer } from '../smtp-answer.ts'
import { LOGIN_UNAVAILABLE, MALFORMED_KEY, UNKNOWN_KEY, WRONG_KIND } from './replies.ts'

/** The owner of a session. */
export interface Login {
  readonly parsed: ParsedKey
  readonly key: ServerKey
  /** In lower case; null if the user name is not the id of a stream. */
  readonly streamId: string | null
}

export interface LoginDeps {
  readonly keys: KeyFinder
  readonly read: Reader
}

/** Kinds of key that clients of the interface have. */
const CLIENT_KINDS: readonly TokenKind[] = ['sk', 'sk_test', 'ak']
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Logs a client in; returns the refusal if that fails. Never rejects. */
export async function logIn(
  deps: LoginDeps,
  { username, password }: { username: string; password: string },
): Promise<Login | SmtpAnswer> {
  const parsed = parseKey(password.trim())
  // Spec key.unknown
  if (parsed === null) return MALFORMED_KEY
  if (!CLIENT_KINDS.includes(parsed.kind)) return UNKNOWN_KEY
  if (parsed.kind === 'ak') return WRONG_KIND
  const key = await findKey(deps, parsed)
  if ('code' in key) return key
  const streamId = await streamNamed(deps.read, key, username.trim().toLowerCase())
  return streamId === 'unavailable' ? LOGIN_UNAVAILABLE : { parsed, key, streamId }
}

/** Checks whether a session's key is still live; returns the refusal if it is not, or if the store does not answer. */
export async function checkLogin(deps: LoginDeps, { parsed }: Login): Promise<SmtpAnswer | null> {
  const key = await findKey(deps, parsed)
  return 'code' in key ? key : null
}

/** Always reads the store, because a revocation holds from its answer on. */
async function findKey({ keys }: LoginDeps, parsed: ParsedKey): Promise<ServerKey | SmtpAnswer> {
  try {
    const owner = await keys(parsed, true)
    if (owner === null) return UNKNOWN_KEY
    return owner.kind === 'server' ? (owner as ServerKey) : WRONG_KIND
  } catch {
    return LOGIN_UNAVAILABLE
  }
}

/** The stream of the server that a user name names; null for any other text. */
async function streamNamed(read: Reader, key: ServerKey, username: string): Promise<string | null | 'unavailable'> {
  const shard = shardOf(key.accountId)
  if (!UUID.test(username) || shard === null || shardOf(username) !== shard) return null
  const seen = await read(shard, [entityFact(shard, streamRef(username))])
  if (seen === null) return 'unavailable'
  return parseState<StreamState>(seen[0])?.serverId === key.serverId ? username : null
}
