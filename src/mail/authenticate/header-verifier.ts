/**
 * header-verifier - mailauth's verifier of signatures, given the hashes of the body in place of the body.
 *
 * The library reads a mail as a stream and hashes its body once for each form that a signature names, each time that it
 * verifies. Here the body is hashed once, by `body-hash.ts`; verifying again, with new answers of the DNS, reads only
 * the header.
 */

import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { ARCData, DKIMResult } from 'mailauth'
import type { BodyForm } from './body-hash.ts'

/** Hashes of a body by the form's key. */
export type BodyHashes = ReadonlyMap<string, string>

/** Results of the verifier. */
export interface Verified {
  readonly results: readonly DKIMResult[]
  /** Addresses of all From fields, and how many fields there are. */
  readonly headerFrom: readonly string[]
  readonly fromFields: number
  /** Input of `arc()` of the library. */
  readonly arc: ARCData
}

export interface VerifierOptions {
  readonly resolver: (name: string, type: string) => Promise<string[][]>
  readonly strict: boolean
  readonly minBitLength: number
  readonly curTime: Date
}

/** As the library makes it; its declarations leave the class out. */
interface LibraryVerifier extends Writable, Verified {
  readonly bodyHashes: Map<string, unknown>
  addBodyHash(canon: string, algorithm: string, bytesMax: number | ''): string
}

const { DkimVerifier } = createRequire(import.meta.url)('mailauth/lib/dkim/dkim-verifier.js') as {
  DkimVerifier: new (options: VerifierOptions) => LibraryVerifier
}

class HeaderVerifier extends DkimVerifier {
  readonly wanted = new Map<string, BodyForm>()
  readonly #hashes: BodyHashes

  constructor(options: VerifierOptions, hashes: BodyHashes) {
    super(options)
    this.#hashes = hashes
  }

  override addBodyHash(canon: string, algorithm: string, bytesMax: number | ''): string {
    const key = `${canon}:${algorithm}:${bytesMax}`
    this.wanted.set(key, {
      canon: canon === 'relaxed' ? 'relaxed' : 'simple',
      algorithm: algorithm === 'sha1' ? 'sha1' : 'sha256',
      bytesMax: bytesMax === '' ? null : bytesMax,
    })
    this.bodyHashes.set(key, {
      digest: () => this.#hashes.get(key) ?? '',
      getMimeStructureStart: () => undefined,
      setContentType: () => undefined,
    })
    return key
  }
}

/** The forms of the body whose hashes the signatures of a header name, by key. */
export async function wantedForms(header: Buffer, options: VerifierOptions): Promise<ReadonlyMap<string, BodyForm>> {
  return (await run(header, { options, hashes: new Map() })).wanted
}

/** Verifies the signatures of a header, which ends with its empty line. Rejects if the library throws. */
export async function verifyHeader(
  header: Buffer,
  { options, hashes }: { options: VerifierOptions; hashes: BodyHashes },
): Promise<Verified> {
  return await run(header, { options, hashes })
}

async function run(
  header: Buffer,
  { options, hashes }: { options: VerifierOptions; hashes: BodyHashes },
): Promise<HeaderVerifier> {
  const verifier = new HeaderVerifier(options, hashes)
  const ended = finished(verifier)
  verifier.end(header)
  await ended
  return verifier
}
