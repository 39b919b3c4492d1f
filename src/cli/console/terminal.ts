/** terminal - how output looks to a person: colours by what came of something, short times, columns within the width.
 *
 *  Where standard output is no terminal all of it is plain and whole, so that other programs can read it.
 */
import { styleText } from 'node:util'

/** The stream that output is written to. */
export interface Terminal {
  /** Characters in a line; null if not a terminal. */
  readonly columns: number | null
  readonly hasColours: boolean
}

const COLUMNS_DEFAULT = 80
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z$/

/** State words and their colours. */
const COLOURS = {
  green: ['delivered', 'active', 'verified', 'ok', 'yes', 'owned', 'alive', 'ended'],
  yellow: ['deferred', 'pending', 'accepted', 'paused', 'leaving', 'cap_warning', 'dns_error', 'mixed'],
  red: [
    'bounced',
    'failed',
    'dead',
    'suppressed',
    'closed',
    'spam_complaint',
    'cap_reached',
    'missing',
    'mismatch',
    'no',
  ],
  cyan: ['unsubscribed', 'inbound', 'cancelled'],
} as const
const COLOUR_OF = new Map<string, keyof typeof COLOURS>(
  Object.entries(COLOURS).flatMap(([colour, words]) =>
    words.map((word) => [word as string, colour as keyof typeof COLOURS] as const),
  ),
)

/** The terminal of standard output, as the environment wants it (NO_COLOR and its like). */
export function thisTerminal(): Terminal {
  const { isTTY, columns } = process.stdout
  if (isTTY !== true) return { columns: null, hasColours: false }
  return { columns: columns || COLUMNS_DEFAULT, hasColours: process.stdout.hasColors() }
}

/** A word in its colour, if it has one; `padded` is the word with its padding. */
export function coloured(word: string, terminal: Terminal, padded = word): string {
  const colour = terminal.hasColours ? COLOUR_OF.get(word) : undefined
  return colour === undefined ? padded : styleText(colour, padded, { validateStream: false })
}

/** In a terminal, the local date and time of an instant; otherwise unchanged. */
export function shortInstant(text: string, terminal: Terminal): string {
  return terminal.columns !== null && INSTANT.test(text) ? new Date(text).toLocaleString('sv') : text
}

/** In a terminal, the local time of day; otherwise the instant unchanged. */
export function timeOfDay(instant: string, terminal: Terminal): string {
  return shortInstant(instant, terminal).replace(/^\S+ /, '')
}
