/**
 * body-hash - the hashes of a received mail's body that its signatures name (RFC 6376 3.4, 3.5 `l=`), as a verifier
 * makes them.
 *
 * A line end is CRLF, or one LF alone. Guarantees: one pass over the body for each canonical form, however many hashes
 * are requested; linear in the body, with any content; memory for 64 KiB.
 *
 * Spec inbound.authentication.dkim
 */

import { createHash, type Hash } from 'node:crypto'

/** Canonical bytes that are gathered before they are hashed. */
const STAGED_BYTES_MAX = 65_536

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20

/** Input of the hash, and its algorithm. */
export interface BodyForm {
  readonly canon: 'simple' | 'relaxed'
  readonly algorithm: 'sha1' | 'sha256'
  /** Bytes of the canonical body that count; null = all. */
  readonly bytesMax: number | null
}

/** The hashes in base64, in the order of the forms. Takes the bytes and the start of the body. */
export function hashBodies(raw: Uint8Array, from: number, forms: readonly BodyForm[]): string[] {
  const hashes: string[] = []
  for (const canon of ['simple', 'relaxed'] as const) {
    const own = forms.filter((form) => form.canon === canon)
    if (own.length === 0) continue
    const body = new CanonicalBody(own)
    canonize(raw, from, { body, isRelaxed: canon === 'relaxed' })
    const made = body.digest()
    for (const [at, form] of forms.entries()) if (form.canon === canon) hashes[at] = made.get(form) as string
  }
  return hashes
}

/** RFC 6376 3.4.3, 3.4.4. */
function canonize(
  raw: Uint8Array,
  from: number,
  { body, isRelaxed }: { body: CanonicalBody; isRelaxed: boolean },
): void {
  let lines = 0
  let isBlank = false
  for (let index = from; index < raw.length; index += 1) {
    const octet = raw[index] as number
    if (isRelaxed && (octet === SPACE || octet === TAB)) {
      isBlank = true
      continue
    }
    if (octet === CR && raw[index + 1] === LF) continue
    if (octet === LF) lines += 1
    else {
      for (; lines > 0; lines -= 1) body.endLine()
      if (isBlank) body.put(SPACE)
      body.put(octet)
    }
    isBlank = false
  }
  // Empty lines at the end do not count; simple always ends with one line end, relaxed only if the body is not empty.
  if (!isRelaxed || body.bytes > 0) body.endLine()
}

/** Canonical bytes on their way into the hashes. */
class CanonicalBody {
  bytes = 0
  readonly #staged = Buffer.allocUnsafe(STAGED_BYTES_MAX)
  #stagedBytes = 0
  #hashedBytes = 0
  readonly #running: ReadonlyMap<string, Hash>
  /** The forms with an end, by that end. */
  readonly #ending: BodyForm[]
  readonly #forms: readonly BodyForm[]
  readonly #made = new Map<BodyForm, string>()

  constructor(forms: readonly BodyForm[]) {
    this.#forms = forms
    this.#running = new Map(forms.map(({ algorithm }) => [algorithm, createHash(algorithm)]))
    this.#ending = forms.filter(({ bytesMax }) => bytesMax !== null).sort((a, b) => endOf(a) - endOf(b))
  }

  put(octet: number): void {
    if (this.#stagedBytes === STAGED_BYTES_MAX) this.#flush()
    this.#staged[this.#stagedBytes] = octet
    this.#stagedBytes += 1
    this.bytes += 1
  }

  endLine(): void {
    this.put(CR)
    this.put(LF)
  }

  digest(): ReadonlyMap<BodyForm, string> {
    this.#flush()
    // The hash that ends at the end of the body covers it completely, so nothing was added.
    for (const form of this.#forms) if (!this.#made.has(form)) this.#end(form)
    return this.#made
  }

  #flush(): void {
    let at = 0
    while (this.#ending.length > 0 && endOf(this.#ending[0] as BodyForm) <= this.#hashedBytes + this.#stagedBytes) {
      const form = this.#ending.shift() as BodyForm
      const end = endOf(form) - this.#hashedBytes
      this.#update(at, end)
      at = end
      this.#end(form)
    }
    this.#update(at, this.#stagedBytes)
    this.#hashedBytes += this.#stagedBytes
    this.#stagedBytes = 0
  }

  #update(from: number, to: number): void {
    for (const hash of this.#running.values()) hash.update(this.#staged.subarray(from, to))
  }

  #end(form: BodyForm): void {
    this.#made.set(form, (this.#running.get(form.algorithm) as Hash).copy().digest('base64'))
  }
}

function endOf({ bytesMax }: BodyForm): number {
  return bytesMax ?? Number.POSITIVE_INFINITY
}
