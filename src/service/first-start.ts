/**
 * first-start - the first account of an empty store, and the file with its keys
 *
 * States of the data directory: empty -> `first-run.json.pending` (keys, fsynced) -> commit -> `first-run.json`.
 *
 * Guarantees: the keys are on disk before the store has them, so a crash at any point neither loses them nor creates a
 * second account; the next start finds the pending keys in the store and finishes, or requests the same keys again.
 * One process does it, under a lock in the store. Both files are readable by their owner only.
 *
 * Keys: `{cl}:first-start` (the lock), `key:<sha256>`, `accounts`.
 */

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { makeKey, parseKey } from '../http/key.ts'
import { moveFile, replaceFile } from '../process/whole-file.ts'
import { LINK_ID_BYTES, newLinkId } from '../state/dashboard/link-token.ts'
import { apiKeyKey } from '../state/keys.ts'
import { countAccounts } from '../store/installation.ts'
import type { Nodes } from '../store/nodes.ts'
import { readRow } from '../store/raw-rows.ts'
import { makeReadKeys } from '../store/read-keys.ts'
import { lockFirstStart } from '../store/start-lock.ts'
import type { ServedUrls } from './served-urls.ts'

/** Shards are on their way while several processes start together. With the last ask, shorter than the lock lives. */
const CREATE_MS_MAX = 20_000
const CREATE_AGAIN_MS = 100
/** Operator keys are on shard 0, and so is an account that is created together with one. */
const FIRST_SHARD = 0
const FILE = 'first-run.json'
const PENDING = 'first-run.json.pending'

interface FirstServer {
  serverId: string
  token: string
  streamId: string
}

/** Content of `first-run.json`. */
export interface FirstRun {
  baseUrl: string
  operatorUrl: string
  operatorToken: string
  /** Where the first person comes in, for a day and once. */
  dashboardUrl: string
  account: { accountId: string; token: string }
  liveServer: FirstServer
  testServer: FirstServer
}

/** Keys that were written down and may or may not be in the store. */
export interface PendingKeys {
  operatorToken: string
  accountToken: string
  liveToken: string
  testToken: string
  linkId: string
}

/** A key in the form for the store. */
export interface FirstKey {
  readonly hash: string
  readonly prefix: string
}

/** The command for the account's actor. */
export interface FirstAccount {
  readonly accountKey: FirstKey
  readonly operatorKey: FirstKey
  readonly liveKey: FirstKey
  readonly testKey: FirstKey
  /** The link into the dashboard. */
  readonly linkId: string
}

export interface FirstStartDeps {
  readonly nodes: Nodes
  readonly dataDir: string
  /** Given keys instead of new ones. Throws if one of them cannot be used. */
  readonly givenKeys?: () => Partial<PendingKeys>
  /** Finds the URLs for the file. */
  readonly findUrls: () => Promise<ServedUrls>
  /** The URL of a link into the dashboard at this URL. */
  readonly linkUrl: (baseUrl: string, linkId: string) => string
  /**
   * Makes the account with its servers on shard 0; true once it is committed, false if nothing was created: ask again.
   */
  createAccount(shard: number, account: FirstAccount): Promise<boolean>
}

/**
 * Creates the first account if the store has none. Returns its keys and the path of their file; null if it has one.
 */
export async function firstStart(deps: FirstStartDeps): Promise<{ firstRun: FirstRun; path: string } | null> {
  const pendingPath = join(deps.dataDir, PENDING)
  if (!existsSync(pendingPath) && (await hasAccount(deps.nodes))) return null
  const unlock = await lockFirstStart(deps.nodes)
  try {
    const firstRun = await makeFirstRun(deps, pendingPath)
    if (firstRun === null) return null
    const path = join(deps.dataDir, FILE)
    replaceFile(pendingPath, `${JSON.stringify(firstRun, null, 2)}\n`)
    moveFile(pendingPath, path)
    return { firstRun, path }
  } finally {
    await unlock()
  }
}

/**
 * The text printed once, with the path of the keys, the link into the dashboard, and a working request with the test
 * server's key. On a terminal the link and the key are shown; elsewhere, because a journal keeps the output, only
 * their path.
 */
export function formatWelcome(path: string, { baseUrl, testServer, dashboardUrl }: FirstRun, isShown: boolean): string {
  const body = JSON.stringify({
    from: 'you@simulator.test',
    to: ['someone@simulator.test'],
    subject: 'Hello',
    text: 'It works.',
  })
  const stored = `$(node -p 'require(${JSON.stringify(path)}).testServer.token')`
  const authorization = isShown ? `'Authorization: Bearer ${testServer.token}'` : `"Authorization: Bearer ${stored}"`
  return [
    '',
    `Dashboard: ${isShown ? dashboardUrl : `its first link is dashboardUrl in ${path}`}`,
    '',
    `The keys of your first account are in ${path}`,
    'Send a first message (the test server delivers to no one):',
    '',
    `curl ${baseUrl}/v1/email -H ${authorization} -H 'Content-Type: application/json' -d '${body}'`,
    '',
    'Follow its events: ./sendwright tail',
    '',
  ].join('\n')
}

async function makeFirstRun(deps: FirstStartDeps, pendingPath: string): Promise<FirstRun | null> {
  const known = readPending(pendingPath)
  const found = known === null ? null : await findFirstRun(deps, known)
  if (found !== null) return found
  if (await hasAccount(deps.nodes)) {
    // A process with another data directory was first: keys that the store never got are worthless.
    rmSync(pendingPath, { force: true })
    return null
  }
  const keys = known ?? { ...makeKeys(), ...deps.givenKeys?.() }
  replaceFile(pendingPath, `${JSON.stringify(keys, null, 2)}\n`)
  await create(deps, {
    accountKey: firstKey(keys.accountToken),
    operatorKey: firstKey(keys.operatorToken),
    liveKey: firstKey(keys.liveToken),
    testKey: firstKey(keys.testToken),
    linkId: keys.linkId,
  })
  const made = await findFirstRun(deps, keys)
  if (made === null) throw new Error('The first account was created but cannot be found')
  return made
}

/** Asks for the account until it is made. @throws Error if no process could create it for 20 s */
async function create({ createAccount }: FirstStartDeps, account: FirstAccount): Promise<void> {
  const startedAtMs = performance.now()
  while (!(await createAccount(FIRST_SHARD, account))) {
    if (performance.now() - startedAtMs >= CREATE_MS_MAX)
      throw new Error('The first account was not created: no process serves shard 0')
    await pause(CREATE_AGAIN_MS)
  }
}

/** Reads the ids that belong to written-down keys; null when the store does not know them. */
async function findFirstRun(deps: FirstStartDeps, keys: PendingKeys): Promise<FirstRun | null> {
  const rowOf = (token: string) => readRow(deps.nodes, FIRST_SHARD, apiKeyKey(FIRST_SHARD, firstKey(token).hash))
  const account = await rowOf(keys.accountToken)
  const live = await rowOf(keys.liveToken)
  const test = await rowOf(keys.testToken)
  if (!account.accountId || !live.serverId || !test.serverId) return null
  const { baseUrl, operatorUrl } = await deps.findUrls()
  return {
    baseUrl,
    operatorUrl,
    operatorToken: keys.operatorToken,
    dashboardUrl: deps.linkUrl(baseUrl, keys.linkId),
    account: { accountId: account.accountId, token: keys.accountToken },
    liveServer: { serverId: live.serverId, token: keys.liveToken, streamId: live.streamId ?? '' },
    testServer: { serverId: test.serverId, token: keys.testToken, streamId: test.streamId ?? '' },
  }
}

function makeKeys(): PendingKeys {
  return {
    operatorToken: makeKey('ok', FIRST_SHARD).token,
    accountToken: makeKey('ak', FIRST_SHARD).token,
    liveToken: makeKey('sk', FIRST_SHARD).token,
    testToken: makeKey('sk_test', FIRST_SHARD).token,
    linkId: newLinkId(FIRST_SHARD, randomBytes(LINK_ID_BYTES)),
  }
}

/** The pending file in either of its forms: bare keys before the commit, the whole file between commit and rename. */
function readPending(path: string): PendingKeys | null {
  if (!existsSync(path)) return null
  const value = parsePending(path)
  return {
    operatorToken: value.operatorToken ?? '',
    accountToken: value.accountToken ?? value.account?.token ?? '',
    liveToken: value.liveToken ?? value.liveServer?.token ?? '',
    testToken: value.testToken ?? value.testServer?.token ?? '',
    linkId: value.linkId ?? linkIdIn(value.dashboardUrl) ?? newLinkId(FIRST_SHARD, randomBytes(LINK_ID_BYTES)),
  }
}

/** The link id of an existing URL. */
function linkIdIn(url: string | undefined): string | null {
  return /#([0-9a-f]+)\./.exec(url ?? '')?.[1] ?? null
}

/** A crash leaves the complete file or none, so a broken one was changed by hand. */
function parsePending(path: string): Partial<PendingKeys> & Partial<FirstRun> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Partial<PendingKeys> & Partial<FirstRun>
  } catch (error) {
    throw new Error(
      `${path} is damaged (${(error as Error).message}): restore it from a backup, or remove it; new keys are created then ` +
        'if the store has no account yet (otherwise: sendwright operator-key)',
    )
  }
}

function firstKey(token: string): FirstKey {
  const parsed = parseKey(token)
  if (parsed === null) throw new Error(`${PENDING} contains an invalid key: remove it`)
  return { hash: parsed.hash, prefix: parsed.prefix }
}

async function hasAccount(nodes: Nodes): Promise<boolean> {
  const counts = await countAccounts(makeReadKeys(nodes))
  if (counts === null) throw new Error('Cannot determine whether the store has accounts')
  return counts.some((count) => count > 0)
}
