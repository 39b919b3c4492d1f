/** mime-mutate - mails with bytes cut, doubled, moved and replaced, drawn by a seed */

const WORDS = [
  '\r\n',
  '\n',
  '\r',
  '--',
  '=',
  '=?utf-8?q?',
  '?=',
  'boundary=',
  '"',
  ';',
  ':',
  '(',
  '<',
  '\0',
  '\x80',
  ' ',
  'Content-Type: ',
  'multipart/mixed',
  'message/rfc822\r\n\r\n',
  'base64',
  "*0*=utf-8''%",
]
/** Makes what mutates mails. */
export function makeMutator(seed: number): (mail: Buffer) => Buffer {
  let state = seed
  const draw = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  return (mail) => {
    let bytes = mail
    for (let left = 1 + draw(8); left > 0; left -= 1) {
      const at = draw(bytes.length + 1)
      const to = Math.min(bytes.length, at + draw(100))
      const word = Buffer.from(WORDS[draw(WORDS.length)] as string, 'latin1')
      const pieces = [
        [bytes.subarray(0, at), word, bytes.subarray(at)],
        [bytes.subarray(0, at), word, bytes.subarray(to)],
        [bytes.subarray(0, at), bytes.subarray(to)],
        [bytes.subarray(0, to), bytes.subarray(at)],
        [bytes.subarray(0, at)],
      ][draw(20) === 0 ? 4 : draw(4)] as Buffer[]
      bytes = Buffer.concat(pieces)
    }
    return bytes
  }
}
