/**
 * look-up - the DNS lookups for judging a mail, passed in by the owner of a resolver and a budget.
 *
 * Answers are like those of `node:dns`, a promise of records, rejected with an error whose `code` is ENOTFOUND for a
 * name that does not exist, ENODATA for one without such records, and any other if the DNS did not answer.
 */

/** Asks for the records of a type. TXT records are lists of strings, MX `{exchange, priority}`, all others strings. */
export type DnsLookUp = (name: string, type: string) => Promise<unknown[]>

const NO_RECORD: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

/** A lookup that records the names that the DNS did not answer. */
export interface WatchedLookUp {
  readonly lookUp: DnsLookUp
  /** In lower case, without a final dot. */
  readonly failed: ReadonlySet<string>
}

/** Watches a look-up. */
export function watchLookUp(lookUp: DnsLookUp): WatchedLookUp {
  const failed = new Set<string>()
  const watched: DnsLookUp = async (name, type) => {
    try {
      return await lookUp(name, type)
    } catch (error) {
      if (!NO_RECORD.has(String((error as { code?: unknown }).code))) failed.add(plainName(name))
      throw error
    }
  }
  return { lookUp: watched, failed }
}

/** A name as `failed` holds it. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
