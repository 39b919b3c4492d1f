/**
 * first-keys - keys that settings name for the first account, so that compose files and CI know them before
 *
 * They are read while the store has no account, and never again: later ones that differ are ignored, with a line in
 * the log. A test key may be a setting. The others give access to real mail and data, so if the API listens on more
 * than the loopback they must come from a file that only its owner can read.
 *
 * Spec key.first-run
 */
import { statSync } from 'node:fs'
import { type ParsedKey, parseKey, type TokenKind } from '../http/key.ts'
import { isWithin } from '../mail/ip-address.ts'
import type { Config, FirstKeyName } from '../process/config.ts'
import { readNamedFile, WrongFile } from '../process/named-file.ts'
import { apiKeyKey } from '../state/keys.ts'
import type { Nodes } from '../store/nodes.ts'
import { readRow } from '../store/raw-rows.ts'
import type { PendingKeys } from './first-start.ts'

/** Fewer different characters among the 32 random ones than any random key has. */
const DIFFERENT_CHARS_MIN = 14
const LOOPBACK = ['127.0.0.0/8', '::1/128']
const FILE_BYTES_MAX = 1_024
/** The first account is on shard 0, which its keys contain. */
const SHARD = 0

type Given = Partial<Pick<PendingKeys, 'operatorToken' | 'accountToken' | 'liveToken' | 'testToken'>>

interface FirstKeyKind {
  readonly name: FirstKeyName
  readonly setting: string
  readonly kind: TokenKind
  readonly field: keyof Given
}

const KINDS: readonly FirstKeyKind[] = [
  { name: 'test', setting: 'FIRST_RUN_TEST_KEY', kind: 'sk_test', field: 'testToken' },
  { name: 'live', setting: 'FIRST_RUN_LIVE_KEY', kind: 'sk', field: 'liveToken' },
  { name: 'account', setting: 'FIRST_RUN_ACCOUNT_KEY', kind: 'ak', field: 'accountToken' },
  { name: 'operator', setting: 'FIRST_RUN_OPERATOR_KEY', kind: 'ok', field: 'operatorToken' },
]

/**
 * The keys that settings name for the first account.
 * @throws WrongFile, or Error without the key, if one cannot be used
 */
export function readFirstKeys({ firstKeys, httpHost }: Pick<Config, 'firstKeys' | 'httpHost'>): Given {
  const given: { -readonly [Field in keyof Given]: string } = {}
  for (const { name, setting, kind, field } of KINDS) {
    const { key, file } = firstKeys[name]
    if (key !== null && name !== 'test' && !isLocal(httpHost))
      throw new Error(`${setting} is allowed only while HTTP_HOST is a loopback address: use ${setting}_FILE`)
    const token = file === null ? key : readKeyFile(`${setting}_FILE`, file)
    if (token === null) continue
    checkKey(file === null ? setting : `${setting}_FILE`, token, { kind, name })
    given[field] = token
  }
  return given
}

/** Settings whose keys the store does not know, once it has its first account. */
export async function ignoredFirstKeys(nodes: Nodes, { firstKeys }: Pick<Config, 'firstKeys'>): Promise<string[]> {
  const ignored: string[] = []
  for (const { name, setting } of KINDS) {
    const { key, file } = firstKeys[name]
    const token = file === null ? key : readOrNull(`${setting}_FILE`, file)
    if (token === null) continue
    const parsed = parseKey(token)
    const row = parsed === null ? {} : await readRow(nodes, SHARD, apiKeyKey(SHARD, parsed.hash))
    if (Object.keys(row).length === 0) ignored.push(file === null ? setting : `${setting}_FILE`)
  }
  return ignored
}

function isLocal(host: string): boolean {
  return host === 'localhost' || isWithin(host, LOOPBACK)
}

function checkKey(setting: string, token: string, { kind, name }: Pick<FirstKeyKind, 'kind' | 'name'>): void {
  const parsed: ParsedKey | null = parseKey(token)
  const random = token.slice(token.lastIndexOf('_') + 1, -6)
  if (parsed?.kind === kind && parsed.shard === SHARD && new Set(random).size >= DIFFERENT_CHARS_MIN) return
  throw new Error(`${setting} is not a key of this kind: create one with sendwright key generate --kind ${name}`)
}

function readKeyFile(setting: string, path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined || !stat.isFile() || stat.size > FILE_BYTES_MAX)
    throw new WrongFile(setting, { wanted: 'a file with a key', path })
  if ((stat.mode & 0o077) !== 0) throw new WrongFile(setting, { wanted: 'a file with mode 0600', path })
  return readNamedFile(setting, path).trim()
}

function readOrNull(setting: string, path: string): string | null {
  try {
    return readKeyFile(setting, path)
  } catch {
    return null
  }
}
