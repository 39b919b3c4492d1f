/** mime-mail - mails for tests of the parser: fields and bodies as text, LF made CRLF */

/** Bytes of a mail that is written with LF. Each octet is a character. */
export function mailOf(text: string): Buffer {
  return Buffer.from(text.replace(/\r?\n/g, '\r\n'), 'latin1')
}

/** A multipart of parts that hold fields, an empty line and a body; ends with its closing line. */
export function multipart(boundary: string, parts: readonly string[], type = 'mixed'): string {
  const inner = parts.map((part) => `--${boundary}\n${part}\n`).join('')
  return `Content-Type: multipart/${type}; boundary="${boundary}"\n\n${inner}--${boundary}--\n`
}

/** A part inside `depth` multiparts. */
export function nest(depth: number, leaf = '\nleaf'): string {
  let inner = leaf
  for (let level = depth; level > 0; level -= 1) inner = multipart(`level${level}`, [inner])
  return inner
}

/** A mail inside `count` attached messages. */
export function attach(count: number, mail: string): string {
  let inner = mail
  for (let level = count; level > 0; level -= 1)
    inner = `From: ${level}@mail.example\nContent-Type: message/rfc822\n\n${inner}`
  return inner
}
