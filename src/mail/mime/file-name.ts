/**
 * file-name - the name of an attachment, as it may be shown and stored.
 *
 * Spec inbound.parse.name
 */

import { cutValue, decodeWords, stripValue } from './header-text.ts'

const NAME_CHARS_MAX = 255

/** A name, null if it is empty after the changes, and the changes. */
export interface FileName {
  readonly name: string | null
  readonly isSanitised: boolean
  readonly hadControls: boolean
}

/** Takes the parameter `filename` or `name`, or null. */
export function readFileName(written: string | null): FileName {
  if (written === null) return { name: null, isSanitised: false, hadControls: false }
  const decoded = decodeWords(written).trim()
  const stripped = stripValue(decoded)
  // A TAB in a name is of no use either.
  const flat = stripped.text.replace(/\t/g, ' ')
  const segment = flat.slice(Math.max(flat.lastIndexOf('/'), flat.lastIndexOf('\\')) + 1)
  const visible = cutValue(segment.replace(/^[\s.]+/, ''), NAME_CHARS_MAX).text
  return { name: visible === '' ? null : visible, isSanitised: visible !== decoded, hadControls: stripped.isChanged }
}
