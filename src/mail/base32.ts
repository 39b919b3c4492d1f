/** base32 - bytes as text that survives a change of case (RFC 4648 section 6, lower case, without padding) */

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
/** Five bytes are eight characters. */
const GROUP_BYTES = 5
const GROUP_CHARS = 8

/** The text of some bytes. Takes a multiple of five, so that nothing is left over. */
export function encodeBase32(bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += GROUP_BYTES) {
    let group = bytes.readUIntBE(at, GROUP_BYTES)
    let chars = ''
    for (let place = 0; place < GROUP_CHARS; place += 1) {
      chars = (ALPHABET[group % 32] as string) + chars
      group = Math.floor(group / 32)
    }
    text += chars
  }
  return text
}

/** The bytes of a text. Takes a multiple of eight characters of the alphabet. */
export function decodeBase32(text: string): Buffer {
  const bytes = Buffer.alloc((text.length / GROUP_CHARS) * GROUP_BYTES)
  for (let at = 0; at < text.length; at += GROUP_CHARS) {
    let group = 0
    for (let place = at; place < at + GROUP_CHARS; place += 1)
      group = group * 32 + ALPHABET.indexOf(text[place] as string)
    bytes.writeUIntBE(group, (at / GROUP_CHARS) * GROUP_BYTES, GROUP_BYTES)
  }
  return bytes
}
