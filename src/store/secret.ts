/**
 * secret - the installation's secret: the setting if given, otherwise the file of the data directory
 *
 * Guarantees: a secret is generated only for a store without an installation, and only once, even if several processes
 * start at the same time. If there are two files, the one that the store confirms becomes `secret-key`; no secret is
 * removed before nothing needs it. A missing secret is reported differently from a wrong one.
 *
 * Files in the data directory: `secret-key`; during a rotation `secret-key.next`, before the store is sealed with it,
 * and `secret-key.previous`, until all is done; `cluster-secret` of earlier releases; `<name>.unused`, the file that
 * lost.
 */

import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createFile, replaceFile } from '../process/whole-file.ts'
import { InstallationMismatch } from './installation.ts'

const SECRET_BYTES = 32
const SECRET_FILE = 'secret-key'
const NEXT_FILE = 'secret-key.next'
const PREVIOUS_FILE = 'secret-key.previous'
/** The file of `npm run cluster`, before both used one file. */
const FORMER_FILE = 'cluster-secret'

/** Where a process has its secrets from. */
export interface SecretSource {
  readonly dataDir: string
  /** The setting SECRET_KEY; or null. */
  readonly secretKey: string | null
  /** The setting SECRET_KEY_PREVIOUS; or null. */
  readonly secretKeyPrevious: string | null
}

export interface SecretPlace extends SecretSource {
  /** The value in the store that distinguishes secrets; null if it has no installation. */
  readonly confirmed: string | null
  /** That of the secret before the last rotation; null if there was none. */
  readonly former: string | null
  /** The value that the store would have for a secret. */
  readonly checkOf: (secret: string) => string
  /** Whether one may be made for a store that holds no installation. */
  readonly mayMake: boolean
}

/** Finds the secret, or makes it. Throws InstallationMismatch when it is missing or is not the store's. */
export function findSecret(place: SecretPlace): string {
  const { dataDir, secretKey, confirmed, former, checkOf, mayMake } = place
  const isRight = (secret: string): boolean => confirmed === null || checkOf(secret) === confirmed
  if (secretKey !== null) {
    const set = secretsOf(place).find(isRight)
    if (set !== undefined) return set
    if (checkOf(secretKey) === former)
      throw new InstallationMismatch(
        'SECRET_KEY is the one from before the last rotation of this store: set the new one',
      )
    throw new InstallationMismatch(
      'SECRET_KEY does not match this store: set the one that it uses, or to change it, that one as SECRET_KEY_PREVIOUS',
    )
  }
  const path = join(dataDir, SECRET_FILE)
  const found = readSecrets(dataDir)
  const right = found.find(({ secret }) => isRight(secret))
  if (right !== undefined) {
    if (right.name === NEXT_FILE) promoteNext(dataDir)
    else if (right.name !== PREVIOUS_FILE) keepOne(dataDir, right.name, found)
    return right.secret
  }
  if (found.some(({ secret }) => checkOf(secret) === former))
    throw new InstallationMismatch(
      `The secret in ${path} is the one from before the last rotation of this store: copy the new one there`,
    )
  if (found.length > 0) {
    const names = found.map(({ name }) => join(dataDir, name)).join(' and ')
    throw new InstallationMismatch(
      `The secret in ${names} does not match this store: put the right one there, or set SECRET_KEY`,
    )
  }
  if (confirmed !== null)
    throw new InstallationMismatch(
      `The secret of this store is missing: restore ${path} from a backup, or set SECRET_KEY; ` +
        'without it the stored hashes and keys cannot be used',
    )
  if (!mayMake)
    throw new InstallationMismatch(`SECRET_KEY is required with REDIS_URL: set it, or put the secret into ${path}`)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  createFile(path, `${randomBytes(SECRET_BYTES).toString('base64url')}\n`)
  return readFileSync(path, 'utf8').trim()
}

/** The secret in a data directory's file; or null. */
export function readSecret(dataDir: string): string | null {
  return readSecrets(dataDir)[0]?.secret ?? null
}

/** Writes a known secret into a recreated directory; an existing one is kept. */
export function keepSecret(dataDir: string, secret: string): void {
  createFile(join(dataDir, SECRET_FILE), `${secret}\n`)
}

/** All secrets that a process has. The first one of the settings is the one to use from the next rotation on. */
export function secretsOf({ dataDir, secretKey, secretKeyPrevious }: SecretSource): readonly string[] {
  if (secretKey === null) return readSecrets(dataDir).map(({ secret }) => secret)
  return secretKeyPrevious === null ? [secretKey] : [secretKey, secretKeyPrevious]
}

/** The secret for the next rotation other than the present one; of files it is made. Null: none is set. */
export function nextSecret(source: SecretSource, present: string): string | null {
  const { dataDir, secretKey } = source
  if (secretKey !== null) return secretKey === present ? null : secretKey
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  createFile(join(dataDir, NEXT_FILE), `${randomBytes(SECRET_BYTES).toString('base64url')}\n`)
  return readFileSync(join(dataDir, NEXT_FILE), 'utf8').trim()
}

/** The store is sealed with the next secret: it becomes the file's. Several processes may do this at once. */
export function promoteNext(dataDir: string): void {
  const next = readFiles(dataDir, [NEXT_FILE])[0]
  if (next === undefined) return
  const present = readFiles(dataDir, [SECRET_FILE])[0]
  if (present !== undefined && present.secret !== next.secret)
    replaceFile(join(dataDir, PREVIOUS_FILE), `${present.secret}\n`)
  replaceFile(join(dataDir, SECRET_FILE), `${next.secret}\n`)
  rmSync(join(dataDir, NEXT_FILE), { force: true })
}

/** Nothing needs the previous secret any more. */
export function dropPrevious(dataDir: string): void {
  rmSync(join(dataDir, PREVIOUS_FILE), { force: true })
}

interface Found {
  readonly name: string
  readonly secret: string
}

/** Reads twice if nothing is found, because another process may just have renamed the file. */
function readSecrets(dataDir: string): Found[] {
  const readAll = (): Found[] => readFiles(dataDir, [SECRET_FILE, NEXT_FILE, PREVIOUS_FILE, FORMER_FILE])
  const found = readAll()
  return found.length > 0 ? found : readAll()
}

function readFiles(dataDir: string, names: readonly string[]): Found[] {
  return names.flatMap((name) => {
    try {
      return [{ name, secret: readFileSync(join(dataDir, name), 'utf8').trim() }]
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}

/** Leaves one file; a file already renamed by another process is skipped. */
function keepOne(dataDir: string, right: string, found: readonly Found[]): void {
  for (const { name, secret } of found) {
    if (name === NEXT_FILE || name === PREVIOUS_FILE || (name === SECRET_FILE && right === SECRET_FILE)) continue
    const path = join(dataDir, name)
    if (name === right) replaceFile(join(dataDir, SECRET_FILE), `${secret}\n`)
    try {
      if (name !== SECRET_FILE) renameSync(path, `${path}.unused`)
      else replaceFile(`${path}.unused`, `${secret}\n`)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}
