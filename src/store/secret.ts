/**
 * secret - the installation's secret: the setting if given, otherwise the file of the data directory
 *
 * Guarantees: a secret is generated only for a store without an installation, and only once, even if several processes
 * start at the same time. If there are two files, the one that the store confirms becomes `secret-key`; no secret is
 * ever removed. A missing secret is reported differently from a wrong one.
 *
 * Files in the data directory: `secret-key`; `cluster-secret` of earlier releases; `<name>.unused`, the file that lost.
 */

import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { createFile, replaceFile } from '../process/whole-file.ts'
import { InstallationMismatch } from './installation.ts'

const SECRET_BYTES = 32
const SECRET_FILE = 'secret-key'
/** The file of `npm run cluster`, before both used one file. */
const FORMER_FILE = 'cluster-secret'

export interface SecretPlace {
  readonly dataDir: string
  /** The setting SECRET_KEY; or null. */
  readonly secretKey: string | null
  /** The value in the store that distinguishes secrets; null if it has no installation. */
  readonly confirmed: string | null
  /** The value that the store would have for a secret. */
  readonly checkOf: (secret: string) => string
  /** Whether one may be made for a store that holds no installation. */
  readonly mayMake: boolean
}

/** Finds the secret, or makes it. Throws InstallationMismatch when it is missing or is not the store's. */
export function findSecret({ dataDir, secretKey, confirmed, checkOf, mayMake }: SecretPlace): string {
  const isRight = (secret: string): boolean => confirmed === null || checkOf(secret) === confirmed
  if (secretKey !== null) {
    if (isRight(secretKey)) return secretKey
    throw new InstallationMismatch('SECRET_KEY does not match this store')
  }
  const path = join(dataDir, SECRET_FILE)
  const found = readSecrets(dataDir)
  const right = found.find(({ secret }) => isRight(secret))
  if (right !== undefined) {
    keepOne(dataDir, right.name, found)
    return right.secret
  }
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

interface Found {
  readonly name: string
  readonly secret: string
}

/** Reads twice if nothing is found, because another process may just have renamed the file. */
function readSecrets(dataDir: string): Found[] {
  const read = (name: string): Found[] => {
    try {
      return [{ name, secret: readFileSync(join(dataDir, name), 'utf8').trim() }]
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  }
  const readAll = (): Found[] => [SECRET_FILE, FORMER_FILE].flatMap(read)
  const found = readAll()
  return found.length > 0 ? found : readAll()
}

/** Leaves one file; a file already renamed by another process is skipped. */
function keepOne(dataDir: string, right: string, found: readonly Found[]): void {
  for (const { name, secret } of found) {
    if (name === SECRET_FILE && right === SECRET_FILE) continue
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
