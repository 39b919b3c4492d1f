/**
 * installation - which installation a store and a data directory belong to, and the secret that goes with them
 *
 * Guarantees:
 * - A store that has lost its installation is never taken for a new one: if the data directory (or this process) knows
 *   an id and the store has none or another, the service stops.
 * - A store is never opened with another SECRET_KEY than the one its hashes were made with.
 *
 * It also counts the accounts of each shard, which decides the shard of the next one.
 *
 * Keys: `{cl}:conf` (id, shards, version, created, secret, former-secret, domain, content). File in the data directory:
 * `installation`.
 */

import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { SHARDS } from '../../cluster/id.ts'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import type { HomeMark } from '../content/open.ts'
import { createFile, replaceFile } from '../process/whole-file.ts'
import { accountsKey } from '../state/keys.ts'
import type { ReadKeys } from '../views/read-keys.ts'
import type { Nodes } from './nodes.ts'

/** Version of the key layout; a store of another one is not opened. */
const SCHEMA_VERSION = 1
/** The same after a rotation of the secret, when releases without a ring would derive other keys. */
export const ROTATED_VERSION = 2
/** Half a minute, twice a second. */
const LOOKS_MAX = 60
const LOOK_STEP_MS = 500
const ID_FILE = 'installation'
/** Field of the conf. Absent while all content is in Redis. */
const HOME_FIELD = 'content'
const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard)

type Conf = Readonly<Record<string, string>>

/** The data directory and the store contradict each other. The start ends with this sentence. */
export class InstallationMismatch extends Error {}

/** Input for opening an installation. */
export interface InstallationPlace {
  readonly dataDir: string
  readonly secretCheck: string
  readonly nowMs: number
  /** Domain of the service, which the records of every customer's domain name. */
  readonly serviceDomain: string
  /** Whether another one than before is meant. */
  readonly acceptDomain: boolean
}

/**
 * Brings store and data directory together: both new, or the directory adopts the store's id, or both agree.
 * `secretCheck` distinguishes secrets. Returns the installation's id. Throws InstallationMismatch otherwise.
 */
export async function openInstallation(redis: Redis, place: InstallationPlace): Promise<string> {
  mkdirSync(place.dataDir, { recursive: true, mode: 0o700 })
  const known = readInstallation(place.dataDir)
  if (known === null) await createConf(redis, place)
  const conf = await redis.hgetall(CONF_KEY)
  const id = requireConf(conf, known)
  if (conf.secret !== place.secretCheck) {
    throw new InstallationMismatch('SECRET_KEY does not match this store')
  }
  await agreeOnDomain(redis, conf.domain ?? null, place)
  if (known === null) replaceFile(join(place.dataDir, ID_FILE), `${id}\n`)
  return id
}

/**
 * Refuses a service domain other than the store's, unless it is confirmed, because customers' records contain the old
 * one.
 */
async function agreeOnDomain(
  redis: Redis,
  before: string | null,
  { serviceDomain, acceptDomain }: InstallationPlace,
): Promise<void> {
  if (before === serviceDomain) return
  if (before !== null && !acceptDomain)
    throw new InstallationMismatch(
      `SERVICE_DOMAIN is ${serviceDomain}, but this installation uses ${before}: the DNS records of all sending domains name ` +
        `${before}, and mail from them is refused from 24 hours after the change. Set SERVICE_DOMAIN=${before}. To change ` +
        'it. To change it, start once with --accept-service-domain and have every customer publish the new records',
    )
  await redis.hset(CONF_KEY, 'domain', serviceDomain)
}

/** Values that distinguish secrets: the store's, null if it has no installation, and that from before a rotation. */
export async function readChecks(redis: Redis): Promise<{ confirmed: string | null; former: string | null }> {
  const [confirmed = null, former = null] = await redis.hmget(CONF_KEY, 'secret', 'former-secret')
  return { confirmed, former }
}

/** Whether an installation was made with this data directory. */
export function wasMade(dataDir: string): boolean {
  return readInstallation(dataDir) !== null
}

/** The id of the installation that a data directory belongs to; or null. */
export function readInstallation(dataDir: string): string | null {
  const path = join(dataDir, ID_FILE)
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : null
}

/** Writes the id into a recreated directory; an existing one is kept. */
export function keepInstallation(dataDir: string, id: string): void {
  createFile(join(dataDir, ID_FILE), `${id}\n`)
}

/**
 * Checks again after the store was unreachable: null if it is the same installation, otherwise the fault. A store that
 * does not answer is asked again, and if it stays unreachable, at its next return.
 */
export async function checkInstallation(redis: () => Redis, id: string): Promise<string | null> {
  for (let tries = 0; tries < LOOKS_MAX; tries += 1) {
    const conf = await redis()
      .hgetall(CONF_KEY)
      .catch(() => null)
    if (conf !== null) return conf.id === id ? null : describeMismatch(conf, id)
    // A stop in the meantime does not wait for it.
    await pause(LOOK_STEP_MS, undefined, { ref: false })
  }
  return null
}

/** Creates the conf of a store in one step, so that a second process finds it complete. */
async function createConf(redis: Redis, { secretCheck, nowMs }: { secretCheck: string; nowMs: number }): Promise<void> {
  if ((await redis.hexists(CONF_KEY, 'id')) === 1) return
  const script = `if redis.call('HSETNX', KEYS[1], 'id', ARGV[1]) == 1 then
    redis.call('HSET', KEYS[1], 'shards', ARGV[2], 'version', ARGV[3], 'created', ARGV[4], 'secret', ARGV[5]) end`
  await redis.eval(script, 1, CONF_KEY, randomUUID(), SHARDS, SCHEMA_VERSION, nowMs, secretCheck)
}

function requireConf(conf: Conf, known: string | null): string {
  const wrong = describeMismatch(conf, known)
  if (wrong !== null) throw new InstallationMismatch(wrong)
  return conf.id as string
}

/** Why a store is not the installation `known` (null for any); null if it is. */
function describeMismatch({ id, shards, version }: Conf, known: string | null): string | null {
  if (id === undefined) {
    return (
      'The store holds no installation, but this data directory belongs to one: it was emptied, or this is another store. ' +
      'After a FLUSHALL or FLUSHDB by hand all data is still in its append-only file: stop Redis at once (SHUTDOWN NOSAVE, ' +
      'no rewrite), cut the file before that command (grep -abo FLUSH appendonlydir/*.incr.aof says where), start again'
    )
  }
  if (known !== null && id !== known)
    return `The store holds installation ${id}, this data directory belongs to ${known}`
  if (shards !== String(SHARDS)) return `The store has ${shards} shards, not ${SHARDS}`
  if (version !== String(SCHEMA_VERSION) && version !== String(ROTATED_VERSION)) {
    return `The store's layout has version ${version}, this release knows ${ROTATED_VERSION}`
  }
  return null
}

/** Accounts by shard; null when the store did not answer. */
export function countAccounts(readKeys: ReadKeys): Promise<readonly number[] | null> {
  return readKeys(
    'zcard',
    ALL_SHARDS.map((shard) => ({ shard, key: accountsKey(shard) })),
  )
}

/** The identity of the home of large content, as recorded by the installation. */
export function makeHomeMark(nodes: Nodes): HomeMark {
  const read = (): Promise<string | null> => nodes.common().hget(CONF_KEY, HOME_FIELD)
  return {
    read,
    async claim(id) {
      await nodes.common().hsetnx(CONF_KEY, HOME_FIELD, id)
      return read()
    },
  }
}
