/** operator-use - notes which operator keys are in use, at most once an hour for each key and process */

import type { KeyFinder } from '../http/key.ts'
import type { KeyOwner } from '../views/key.ts'

const NOTE_MS = 3_600_000
/** Active keys are bounded by 50; revoked ones leave with the oldest. */
const KNOWN_MAX = 1_000

/** Wraps the look-up of keys. `note` records a use; its failure is not the request's. */
export function notingUse(
  find: KeyFinder,
  { note, nowMs }: { note: (tokenId: string) => Promise<unknown>; nowMs: () => number },
): KeyFinder {
  const noted = new Map<string, number>()
  const look = (owner: KeyOwner | null): KeyOwner | null => {
    if (owner?.kind !== 'operator') return owner
    const { tokenId } = owner
    const now = nowMs()
    if (now - (noted.get(tokenId) ?? Number.NEGATIVE_INFINITY) < NOTE_MS) return owner
    if (noted.size >= KNOWN_MAX) noted.delete(noted.keys().next().value as string)
    noted.set(tokenId, now)
    void note(tokenId).catch(() => undefined)
    return owner
  }
  return (...args) => {
    const found = find(...args)
    return found instanceof Promise ? found.then(look) : look(found)
  }
}
