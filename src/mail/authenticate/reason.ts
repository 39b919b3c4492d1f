/** reason - a verifier's reason for its verdict and the record that it found, shortened. */

/** A key of 4,096 bits is 750 characters, an SPF record that is of use less. */
const CHARS_MAX = 2000

/** A text, truncated if it is too long. */
export function clip<Text extends string | null>(text: Text): Text {
  if (text === null || text.length <= CHARS_MAX) return text
  return `${text.slice(0, CHARS_MAX)}...` as Text
}
