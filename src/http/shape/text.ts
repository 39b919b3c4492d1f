/**
 * text - lengths in Unicode code points, and the two things no string may hold
 *
 * Spec text.length, text.forbidden
 */

/** Both methods exist since Node 20, but the compiler's library of that year does not declare them. */
interface WellFormed {
  isWellFormed(): boolean
  toWellFormed(): string
}

/** Whether the text has fewer code points than `min`. Counts only if the length in UTF-16 units is not conclusive. */
export function isShorter(text: string, min: number): boolean {
  if (text.length < min) return true
  return text.length < min * 2 && countCodePoints(text) < min
}

/** Whether the text has more code points than `max`. Counts only if the length in UTF-16 units is not conclusive. */
export function isLonger(text: string, max: number): boolean {
  if (text.length <= max) return false
  return text.length > max * 2 || countCodePoints(text) > max
}

/** Whether the text holds U+0000 or a lone surrogate. Spec text.forbidden */
export function isForbidden(text: string): boolean {
  return text.includes('\0') || !(text as unknown as WellFormed).isWellFormed()
}

/** The text with U+FFFD for each lone surrogate; our own output has none. */
export function toWellFormed(text: string): string {
  return (text as unknown as WellFormed).toWellFormed()
}

/** Whether any string of a value has a forbidden character. The schema bounds the depth of the value. */
export function holdsForbidden(value: unknown): boolean {
  if (typeof value === 'string') return isForbidden(value)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsForbidden)
  return Object.entries(value).some(([name, field]) => isForbidden(name) || holdsForbidden(field))
}

function countCodePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
