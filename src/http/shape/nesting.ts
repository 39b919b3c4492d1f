/**
 * nesting - detects a JSON text that is mainly lists and objects, because ten megabytes of them take the parser two
 * seconds
 *
 * No body of any route comes near these bounds. Strings are skipped, so that a large attachment costs one search.
 *
 * Spec request.json
 */

/** Texts up to this length are parsed within a millisecond, with any content. */
const TEXT_CHARS_SURE = 64 * 1024
const DEPTH_MAX = 1_000
export const NESTED_MAX = 100_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * Whether lists and objects are nested too deep, or more than `countMax`. Takes a text that may be JSON.
 */
export function isOvernested(text: string, countMax: number = NESTED_MAX): boolean {
  if (text.length <= TEXT_CHARS_SURE) return false
  let depth = 0
  let count = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = endOfString(text, at)
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1
      count += 1
      if (depth > DEPTH_MAX || count > countMax) return true
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      depth -= 1
    }
  }
  return false
}

/**
 * Position of the quote that ends a string; the text's length if there is none. `start` is the position of the opening
 * quote.
 */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1
    if (escapes % 2 === 0) return at
  }
  return text.length
}
