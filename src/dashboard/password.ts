/**
 * password - passwords are hashed and compared: scrypt of `node:crypto`, two at once in a process
 *
 * 32 MiB and a quarter of a second each. Up to twenty wait, served by client network. Beyond these a try is refused
 * (`null`), so that a flood cannot use up memory or threads. A network with fewer waiting replaces one of the network
 * with the most.
 *
 * Spec session.password
 */

import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { FairQueue } from '../process/fair-queue.ts'

const LN = 15
const BLOCK = 8
const PARALLEL = 3
const SALT_BYTES = 16
const HASH_BYTES = 32
/** Scrypt takes 128 * N * r bytes, and some. */
const OPTIONS: ScryptOptions = { N: 2 ** LN, r: BLOCK, p: PARALLEL, maxmem: 64 * 1024 * 1024 }
const AT_ONCE = 2
const WAITING_MAX = 20
const STORED = /^\$scrypt\$ln=15,r=8,p=3\$([\w+/]+)\$([\w+/]+)$/
/** Compared with the password for an unknown user, so that it takes the same time. */
const NOBODY = `$scrypt$ln=${LN},r=${BLOCK},p=${PARALLEL}$${'A'.repeat(22)}$${'A'.repeat(43)}`

let underWay = 0
const waiting = new FairQueue<(mayRun: boolean) => void>(WAITING_MAX, () => performance.now())

/** Hashes a new password. Takes the client's network. Null if too many wait. */
export async function hashPassword(password: string, client: string): Promise<string | null> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive(password, salt, client)
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
  return hash && `$scrypt$ln=${LN},r=${BLOCK},p=${PARALLEL}$${text(salt)}$${text(hash)}`
}

/**
 * Whether a password is the stored one. A null `stored` means an unknown user, and takes as long. Takes the client's
 * network. Null if too many wait.
 */
export async function isPassword(password: string, stored: string | null, client: string): Promise<boolean | null> {
  const [, salt = '', hash = ''] = STORED.exec(stored ?? NOBODY) ?? []
  const found = await derive(password, Buffer.from(salt, 'base64'), client)
  if (found === null) return null
  const expected = Buffer.from(hash, 'base64')
  return expected.length === found.length && timingSafeEqual(found, expected) && stored !== null
}

async function derive(password: string, salt: Buffer, client: string): Promise<Buffer | null> {
  if (underWay < AT_ONCE) underWay += 1
  else if (!(await hasTurn(client))) return null
  const startedAtMs = performance.now()
  try {
    return await new Promise((resolve, reject) =>
      scrypt(password.normalize('NFKC'), salt, HASH_BYTES, OPTIONS, (fault, hash) =>
        fault === null ? resolve(hash) : reject(fault),
      ),
    )
  } finally {
    waiting.charge(client, performance.now() - startedAtMs)
    // The next takes the place over.
    const next = waiting.take()
    if (next === null) underWay -= 1
    else next.item(true)
  }
}

/** Waits for a place; false if the queue is full. */
function hasTurn(client: string): Promise<boolean> {
  return new Promise((settle) => {
    if (waiting.push(client, settle)) return
    const displaced = waiting.displace(client)
    if (displaced === null) return settle(false)
    displaced(false)
    waiting.push(client, settle)
  })
}
