/**
 * seed - the accounts of a measurement, made through the runtime itself, before the service starts or beside it
 *
 * Every account has one server with one key and limits above every load; live servers have a verified domain. A worker
 * of our own makes them and gives its shards back, or asks the service that runs already.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from '../../cluster/behaviour.ts'
import { newCmdId } from '../../cluster/cmd-id.ts'
import { SHARDS } from '../../cluster/id.ts'
import { connectRedisStore } from '../../cluster/redis/store.ts'
import { connectClusterStore } from '../../cluster/slots/cluster-store.ts'
import { startWorker, type Worker } from '../../cluster/worker/worker.ts'
import { OPERATOR_INTEGER_MAX } from '../../schemas/limits.ts'
import { type CreateAccountReply, placeAccount } from '../../src/actors/account/create-account.ts'
import { BEHAVIOURS } from '../../src/actors/behaviours.ts'
import { makeKey } from '../../src/http/key.ts'
import { type DkimKeyPair, formatKeyOwner, makeDkimKeyPair } from '../../src/mail/compose/dkim-key.ts'
import { processIdentity } from '../../src/process/identity.ts'
import { deriveRingKeys, Ring } from '../../src/state/ring/ring.ts'
import { NONCE_BYTES, type SealingRing, sealSecret } from '../../src/state/ring/sealing.ts'

/** The domain that live servers send from. */
export const LIVE_DOMAIN = 'acme.example.com'

const LIMITS = {
  perMinuteLimit: OPERATOR_INTEGER_MAX,
  approvedCap: OPERATOR_INTEGER_MAX,
  monthlyCap: OPERATOR_INTEGER_MAX,
  highestCap: OPERATOR_INTEGER_MAX,
  testPerMinuteLimit: OPERATOR_INTEGER_MAX,
  testMonthlyCap: OPERATOR_INTEGER_MAX,
}
const AT_ONCE = 64
const TRIES_MAX = 15
const AGAIN_MS = 200

export interface Seeding {
  readonly socketPath: string
  /** Instead of the socket: nodes of a cluster, or the address of the one Redis. */
  readonly seeds?: readonly string[] | null
  readonly accounts: number
  readonly mode: 'live' | 'test'
  /** The installation's secret: it seals the keys that sign. */
  readonly secretKey: string
  /** Limit of each account's test servers in a minute, by default above every load. */
  readonly perMinute?: number
  /**
   * How many shards of a service that runs to deal the accounts out to, one after the other; by default the accounts
   * are placed as the product does, and no service runs yet.
   */
  readonly over?: number
}

/** Makes the accounts. Returns the servers' keys. */
export async function seedAccounts({
  socketPath,
  seeds,
  accounts,
  mode,
  secretKey,
  perMinute = OPERATOR_INTEGER_MAX,
  over,
}: Seeding): Promise<string[]> {
  const [address = socketPath, ...others] = seeds ?? []
  const cluster =
    others.length === 0 ? null : await connectClusterStore({ seeds: [address, ...others], durability: 'fsync' })
  const store = cluster ?? (await connectRedisStore({ address, durability: 'fsync' }))
  const worker = await startWorker({
    store,
    ...(cluster !== null && { primaries: cluster }),
    behaviours: { ...BEHAVIOURS, lanes: [] },
    log: { info: () => undefined, warn: () => undefined, error: console.error },
    shards: SHARDS,
    // A running service keeps its shards, because asks for moving shards are refused.
    takesShards: over === undefined,
    random: Math.random,
    identity: () => ({ ...processIdentity(), ...store.identity, roles: ['actors'] }),
  })
  const keys: string[] = []
  const ring = new Ring(deriveRingKeys(secretKey))
  const pair = await makeDkimKeyPair()
  const counts = Array.from({ length: SHARDS }, () => 0)
  const places = Array.from({ length: SHARDS }, (_, shard) => `/${cluster?.of(shard)?.name ?? ''}`)
  for (let start = 0; start < accounts; start += AT_ONCE) {
    const length = Math.min(AT_ONCE, accounts - start)
    const shards = Array.from({ length }, (_, at) => (over === undefined ? place(counts, places) : (start + at) % over))
    keys.push(
      ...(await Promise.all(
        shards.map((shard, at) =>
          makeAccount(worker, { number: start + at, shard, mode, perMinute, signing: { ring, pair } }),
        ),
      )),
    )
  }
  await worker.stop()
  store.close()
  return keys
}

/** The shard on which the product would place the next account. */
function place(counts: number[], places: readonly string[]): number {
  const shard = placeAccount(counts, places)
  counts[shard] = (counts[shard] ?? 0) + 1
  return shard
}

async function makeAccount(
  worker: Worker,
  { number, shard, mode, perMinute, signing }: Pick<Seeding, 'mode'> & Making,
): Promise<string> {
  const serverKey = makeKey(mode === 'live' ? 'sk' : 'sk_test', shard)
  const accountKey = makeKey('ak', shard)
  const created = await ask<CreateAccountReply>(worker, shard, 'create-account', {
    name: `Account ${number}`,
    status: 'active',
    accountKey: { hash: accountKey.hash, prefix: accountKey.prefix },
    operatorKey: null,
    servers: [{ name: 'Server', mode, key: { hash: serverKey.hash, prefix: serverKey.prefix } }],
  })
  const { accountId } = created
  await ask(worker, shard, 'patch-account', {
    accountId,
    changes: { ...LIMITS, testPerMinuteLimit: perMinute },
  })
  if (mode === 'live') await verifyDomain(worker, shard, { order: { accountId, keyHash: accountKey.hash }, signing })
  return serverKey.token
}

interface Making {
  readonly number: number
  readonly shard: number
  readonly perMinute: number
  readonly signing: Signing
}

/** One key pair for the domains of all accounts: making one for each would take longer than the measurement. */
interface Signing {
  readonly ring: SealingRing
  readonly pair: DkimKeyPair
}

/** Adds the domain and records a look-up that found both records. */
async function verifyDomain(
  worker: Worker,
  shard: number,
  { order, signing }: { order: { accountId: string; keyHash: string }; signing: Signing },
): Promise<void> {
  const { privateKey, publicKey } = signing.pair
  const named = { domain: LIVE_DOMAIN, selector: 'bench' }
  const owner = formatKeyOwner({ accountId: order.accountId, ...named })
  const sealed = sealSecret(signing.ring, { secret: privateKey, owner, nonce: randomBytes(NONCE_BYTES) })
  const key = { ...named, publicKey, sealedPrivateKey: sealed.toString('base64') }
  const added = await ask<{ domain: { domainId: string } }>(worker, shard, 'add-domain', { ...order, ...key })
  const { domainId } = added.domain
  await ask(worker, shard, 'record-check', { ...order, domainId, check: { returnPath: 'ok', dkim: 'ok' } })
}

async function ask<Reply>(worker: Worker, shard: number, name: string, body: unknown): Promise<Reply> {
  const command: Command = { name, cmdId: newCmdId(worker.nowMs(), Math.random), body }
  let result = await worker.ask(shard, command)
  // An ask that was unavailable never becomes true later, so it can be repeated.
  for (let tries = 1; result.kind === 'unavailable' && tries < TRIES_MAX; tries += 1) {
    await pause(AGAIN_MS)
    result = await worker.ask(shard, command)
  }
  if (result.kind !== 'answer') throw new Error(`${name} was not answered: ${result.kind}`)
  const reply = result.reply as { kind: string; code?: string }
  if (reply.kind === 'refused') throw new Error(`${name} was refused: ${reply.code}`)
  return reply as Reply
}
