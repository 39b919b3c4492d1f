/**
 * digits - numbers as text out of tables.
 *
 * Every message is named by a few ids. Of a number beyond 31 bits the engine works out one digit after the other (1.3 µs
 * for 44 bits in hex); from a table come two or three of them at a time.
 */

const HEX3 = tableOf(16, 3)
const DECIMAL3 = tableOf(10, 3)
const BASE36_2 = tableOf(36, 2)
const TWENTY_FOUR_BITS = 2 ** 24
const TWELVE_BITS = 0xfff

/** Three hex digits of a whole number below 2 ** 12. */
export function hex3(value: number): string {
  return HEX3[value]!
}

/** Twelve hex digits of a whole number below 2 ** 48. */
export function hex12(value: number): string {
  const high = Math.floor(value / TWENTY_FOUR_BITS)
  const low = value - high * TWENTY_FOUR_BITS
  return HEX3[high >>> 12]! + HEX3[high & TWELVE_BITS]! + HEX3[low >>> 12]! + HEX3[low & TWELVE_BITS]!
}

/** A whole number from 0 to 2 ** 53 - 1 in decimal; what is none as the language says it. */
export function decimalOf(value: number): string {
  if (!(value >= 1_000 && value < Number.POSITIVE_INFINITY)) return String(value)
  const rest = Math.floor(value / 1_000)
  return decimalOf(rest) + DECIMAL3[value - rest * 1_000]!
}

/** Four digits in base 36 of a whole number below 36 ** 4. */
export function base36(value: number): string {
  return BASE36_2[Math.floor(value / 1_296)]! + BASE36_2[value % 1_296]!
}

/** Every number of so many digits, with zeros before it. */
function tableOf(base: number, digits: number): readonly string[] {
  return Array.from({ length: base ** digits }, (_, value) => value.toString(base).padStart(digits, '0'))
}
