/**
 * operator-key - creates an admin key directly in the store, after the last one was lost
 *
 * No state holds operator keys and no turn reads them: they are read at each request, so writing them without the
 * shard's owner is safe. All writes are one transaction, with an entry in the audit log whose actor is no key.
 *
 * Keys: `key:<sha256>`, `tokens:operator`, `token-ids:operator`, `audit:<yyyymm>`, all on shard 0
 *
 * Spec operator.key, operator.audit
 */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeIds } from '../../cluster/id.ts'
import { makeKey } from '../http/key.ts'
import type { Config } from '../process/config.ts'
import { replaceFile } from '../process/whole-file.ts'
import { newKeyOps, OPERATOR_OWNER, revokedKeyOps, unpackToken } from '../state/api-key.ts'
import { entryOps } from '../state/audit.ts'
import { tokensKey } from '../state/keys.ts'
import type { Nodes } from '../store/nodes.ts'
import { readRow, readTimeMs, writeRows } from '../store/raw-rows.ts'
import { withStore } from '../store/with-store.ts'

/** Operator keys live here. */
const SHARD = 0
const KEY_NAME = 'Made in the store'

export interface MadeOperatorKey {
  readonly tokenId: string
  /** The value: it is shown once. */
  readonly token: string
  /** Ids of the revoked keys. */
  readonly revoked: readonly string[]
  /** The file with the new key for commands on this machine; null if there is no usable one. */
  readonly path: string | null
  /** Why the file of the first start was left as it is; null: it was not. */
  readonly broken: string | null
}

/** Makes the key. Throws Error when there is no store or it does not answer. */
export function makeOperatorKey(
  config: Config,
  { revokeOthers }: { readonly revokeOthers: boolean },
): Promise<MadeOperatorKey> {
  return withStore(config, async (nodes) => {
    const made = await writeKey(nodes, revokeOthers)
    return { ...made, ...tellFirstRun(config.dataDir, made.token) }
  })
}

async function writeKey(nodes: Nodes, revokeOthers: boolean): Promise<Omit<MadeOperatorKey, 'path' | 'broken'>> {
  const nowMs = Math.floor(await readTimeMs(nodes, SHARD))
  const ids = makeIds({ shard: SHARD, last: '', random: Math.random })
  const tokenId = ids.next(nowMs)
  const { token, hash, prefix } = makeKey('ok', SHARD)
  const known = Object.entries(await readRow(nodes, SHARD, tokensKey(SHARD, OPERATOR_OWNER)))
  const live = known.map(([id, row]) => ({ tokenId: id, token: unpackToken(row) })).filter(isLive)
  const ended = revokeOthers ? live : []
  const revoked = ended.map((one) => one.tokenId)
  const grant = { kind: 'operator', accountId: null, serverId: null, mode: null, streamId: null } as const
  const ops = [
    ...newKeyOps(SHARD, { hash, prefix }, { ...grant, tokenId, name: KEY_NAME, role: 'admin', createdAtMs: nowMs }),
    ...ended.flatMap((one) =>
      revokedKeyOps(SHARD, OPERATOR_OWNER, { ...one, token: { ...one.token, revokedAtMs: nowMs } }),
    ),
    ...entryOps(SHARD, {
      auditId: ids.next(nowMs),
      actor: null,
      act: 'makeOperatorKey',
      note: null,
      targets: { tokenId },
      before: { live: live.map((one) => one.tokenId) },
      after: { live: [...live.map((one) => one.tokenId).filter((id) => !revoked.includes(id)), tokenId], prefix },
    }),
  ]
  await writeRows(nodes, SHARD, { name: 'key', ops })
  return { tokenId, token, revoked }
}

function isLive({ token }: { token: { revokedAtMs: number | null } }): boolean {
  return token.revokedAtMs === null
}

/** Commands on this machine find the operator's key in the file of the first start: it is kept true. */
function tellFirstRun(dataDir: string, operatorToken: string): Pick<MadeOperatorKey, 'path' | 'broken'> {
  const path = join(dataDir, 'first-run.json')
  if (!existsSync(path)) return { path: null, broken: null }
  try {
    const firstRun: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof firstRun !== 'object' || firstRun === null) throw new Error('not a JSON object')
    replaceFile(path, `${JSON.stringify({ ...firstRun, operatorToken }, null, 2)}\n`)
    return { path, broken: null }
  } catch (error) {
    // The key exists already, so it is only printed on standard output.
    return { path: null, broken: `${path} is broken (${(error as Error).message}) and was left as it is` }
  }
}
