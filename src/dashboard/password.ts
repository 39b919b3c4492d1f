/**
 * password - passwords are hashed and compared: scrypt of `node:crypto`, two at once in a process
 *
 * 32 MiB and a quarter of a second each; beyond those that wait nobody is let in (`null`), so that a flood of tries
 * takes neither the memory nor the threads from everything else.
 *
 * Spec session.password
 */

import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'

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
/** What the password of nobody is compared with, so that it takes as long as anybody's. */
const NOBODY = `$scrypt$ln=${LN},r=${BLOCK},p=${PARALLEL}$${'A'.repeat(22)}$${'A'.repeat(43)}`

let underWay = 0
const waiting: (() => void)[] = []

/** Hashes a password that was chosen. Null: too many wait. */
export async function hashPassword(password: string): Promise<string | null> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive(password, salt)
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
  return hash && `$scrypt$ln=${LN},r=${BLOCK},p=${PARALLEL}$${text(salt)}$${text(hash)}`
}

/** Whether a password is the stored one; null stored: nobody's, which takes as long. Null: too many wait. */
export async function isPassword(password: string, stored: string | null): Promise<boolean | null> {
  const [, salt = '', hash = ''] = STORED.exec(stored ?? NOBODY) ?? []
  const found = await derive(password, Buffer.from(salt, 'base64'))
  if (found === null) return null
  const expected = Buffer.from(hash, 'base64')
  return expected.length === found.length && timingSafeEqual(found, expected) && stored !== null
}

async function derive(password: string, salt: Buffer): Promise<Buffer | null> {
  if (underWay >= AT_ONCE) {
    if (waiting.length >= WAITING_MAX) return null
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else {
    underWay += 1
  }
  try {
    return await new Promise((resolve, reject) =>
      scrypt(password.normalize('NFKC'), salt, HASH_BYTES, OPTIONS, (fault, hash) =>
        fault === null ? resolve(hash) : reject(fault),
      ),
    )
  } finally {
    // Whoever waits takes the place over.
    const next = waiting.shift()
    if (next === undefined) underWay -= 1
    else next()
  }
}
