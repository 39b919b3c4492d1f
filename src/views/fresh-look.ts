/**
 * fresh-look - a look that costs something, taken anew at most every so many milliseconds
 *
 * Whoever asks meanwhile is served what was seen last, and all who ask while one is under way wait for the same. A look
 * that finds nothing out (null: the store is away) leaves what was seen before.
 */

export interface FreshLook<Seen> {
  /** What is served until a first look has found something out. */
  readonly first: Seen
  /** How long a look serves, in ms. */
  readonly freshMs: number
  readonly nowMs: () => number
  readonly look: () => Promise<Seen | null>
}

/**
 * Makes the look. Out: what asks for it; rejects with what `look` rejects with, and the next one to ask looks again.
 */
export function makeFreshLook<Seen>({ first, freshMs, nowMs, look }: FreshLook<Seen>): () => Promise<Seen> {
  let seen = first
  let seenAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<Seen> | null = null
  const takeLook = async (): Promise<Seen> => {
    try {
      seen = (await look()) ?? seen
      seenAtMs = nowMs()
      return seen
    } finally {
      running = null
    }
  }
  return async () => {
    // A clock that was set back must not serve an old look for ever.
    if (Math.abs(nowMs() - seenAtMs) < freshMs) return seen
    running ??= takeLook()
    return running
  }
}
