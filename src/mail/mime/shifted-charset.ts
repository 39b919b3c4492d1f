/**
 * shifted-charset - charsets of mail that neither the WHATWG Encoding Standard nor iconv-lite decode: iso-2022-kr (RFC
 * 1557), hz-gb-2312 (RFC 1843) and johab, rewritten as euc-kr or gbk, which have the same characters.
 *
 * Guarantees: never throws; time linear in the bytes. Invalid bytes become U+FFFD, as in any charset.
 */

const SO = 0x0e
const SI = 0x0f
const ESC = 0x1b
const LF = 0x0a
const TILDE = 0x7e
const HIGH = 0x80
const REPLACEMENT = '\ufffd'

const eucKr = new TextDecoder('euc-kr')
const gbk = new TextDecoder('gbk')

type Decode = (bytes: Uint8Array) => string

/** Decoders by label, in lower case. */
export const SHIFTED: ReadonlyMap<string, Decode> = new Map([
  ['iso-2022-kr', decodeIso2022Kr],
  ['csiso2022kr', decodeIso2022Kr],
  ['hz-gb-2312', decodeHz],
  ['hz', decodeHz],
  ['johab', decodeJohab],
  ['cp1361', decodeJohab],
  ['ms_1361', decodeJohab],
])

/** SO and SI shift; each line begins unshifted. The designator `ESC $ ) C` adds nothing. */
function decodeIso2022Kr(bytes: Uint8Array): string {
  const out = Buffer.alloc(bytes.length)
  let length = 0
  let isShifted = false
  for (let at = 0; at < bytes.length; at += 1) {
    const octet = bytes[at] as number
    if (octet === SO || octet === SI) isShifted = octet === SO
    else if (octet === ESC && bytes[at + 1] === 0x24 && bytes[at + 2] === 0x29 && bytes[at + 3] === 0x43) at += 3
    else {
      if (octet === LF) isShifted = false
      out[length] = isShifted && octet > 0x20 ? octet | HIGH : octet
      length += 1
    }
  }
  return eucKr.decode(out.subarray(0, length))
}

/** `~{` and `~}` shift, `~~` is a tilde, `~` at the end of a line continues it. */
function decodeHz(bytes: Uint8Array): string {
  const out = Buffer.alloc(bytes.length)
  let length = 0
  let isShifted = false
  for (let at = 0; at < bytes.length; at += 1) {
    const octet = bytes[at] as number
    const next = octet === TILDE ? bytes[at + 1] : undefined
    if (next === 0x7b || next === 0x7d || next === LF) {
      if (next !== LF) isShifted = next === 0x7b
      at += 1
      continue
    }
    if (next === TILDE && !isShifted) at += 1
    if (octet === LF) isShifted = false
    out[length] = isShifted && octet > 0x20 ? octet | HIGH : octet
    length += 1
  }
  return gbk.decode(out.subarray(0, length))
}

/** Two octets, the first not ASCII, are a syllable by its letters, or a character of KS X 1001. */
function decodeJohab(bytes: Uint8Array): string {
  const out: string[] = []
  for (let at = 0; at < bytes.length; at += 1) {
    const lead = bytes[at] as number
    if (lead < HIGH) {
      out.push(String.fromCharCode(lead))
      continue
    }
    const trail = bytes[at + 1] ?? 0
    const character = lead < 0xd8 ? decodeHangul(lead * 256 + trail) : decodeKsX1001(lead, trail)
    out.push(character ?? REPLACEMENT)
    // An octet of ASCII after a broken pair is read as itself.
    if (character !== null || trail >= HIGH) at += 1
  }
  return out.join('')
}

/** Letters by their five bits; `-` is no letter, `.` is not assigned. Compatibility letters, as KS X 1001 has them. */
const INITIALS = '.-ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ...........'
const MEDIALS = '..-ㅏㅐㅑㅒㅓ..ㅔㅕㅖㅗㅘㅙ..ㅚㅛㅜㅝㅞㅟ..ㅠㅡㅢㅣ..'
const FINALS = '.-ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁ.ㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ..'
const lettersOf = (table: string): string => table.replace(/[.-]/g, '')
const [INITIAL_LETTERS, MEDIAL_LETTERS, FINAL_LETTERS] = [INITIALS, MEDIALS, FINALS].map(lettersOf) as [
  string,
  string,
  string,
]

/** A syllable from its letters, or a single letter; null for anything else (Unicode 3.12). */
function decodeHangul(code: number): string | null {
  const initial = INITIALS[(code >> 10) & 31] as string
  const medial = MEDIALS[(code >> 5) & 31] as string
  const final = FINALS[code & 31] as string
  if ([initial, medial, final].includes('.')) return null
  const alone = [initial, medial, final].filter((letter) => letter !== '-')
  // All three are fill characters, a full-width blank.
  if (alone.length === 0) return '\u3000'
  if (alone.length === 1) return alone[0] as string
  if (initial === '-' || medial === '-') return null
  const syllable = INITIAL_LETTERS.indexOf(initial) * MEDIAL_LETTERS.length + MEDIAL_LETTERS.indexOf(medial)
  return String.fromCharCode(0xac00 + syllable * (FINAL_LETTERS.length + 1) + FINAL_LETTERS.indexOf(final) + 1)
}

/** Two rows of KS X 1001 are one lead octet (annex 3). */
function decodeKsX1001(lead: number, trail: number): string | null {
  const isTrail = (trail >= 0x31 && trail <= 0x7e) || (trail >= 0x91 && trail <= 0xfe)
  if (lead < 0xd9 || lead === 0xdf || lead > 0xf9 || !isTrail) return null
  const row = lead < 0xe0 ? 2 * (lead - 0xd9) : 2 * lead - 0x197
  const cell = trail < 0x91 ? trail - 0x31 : trail - 0x43
  const isSecond = cell >= 94
  const character = eucKr.decode(Uint8Array.of(row + (isSecond ? 1 : 0) + 0xa1, cell - (isSecond ? 94 : 0) + 0xa1))
  return character.includes(REPLACEMENT) ? null : character
}
