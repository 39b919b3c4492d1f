/**
 * flowed - text of `format=flowed` (RFC 3676), its paragraphs made one line again.
 *
 * A line that ends in a space continues in the next one of the same quote depth, except the signature line `-- `.
 * Guarantees: time linear in the text.
 */

interface Line {
  readonly depth: number
  readonly text: string
}

const SIGNATURE = '-- '

/** Takes text with LF line ends, and whether the space at a soft end was added (`DelSp=yes`). */
export function unflow(text: string, isSpaceAdded: boolean): string {
  const out: string[] = []
  let pieces: string[] = []
  let depth = 0
  const flush = (): void => {
    if (pieces.length > 0) out.push(`${depth === 0 ? '' : `${'>'.repeat(depth)} `}${pieces.join('')}`)
    pieces = []
  }
  for (const written of text.split('\n')) {
    const line = readLine(written)
    if (line.depth !== depth) flush()
    depth = line.depth
    if (line.text === SIGNATURE) {
      flush()
      out.push(`${depth === 0 ? '' : `${'>'.repeat(depth)} `}${SIGNATURE}`)
    } else if (line.text.endsWith(' ')) {
      pieces.push(isSpaceAdded ? line.text.slice(0, -1) : line.text)
    } else {
      pieces.push(line.text)
      flush()
    }
  }
  flush()
  return out.join('\n')
}

/** The quote marks, then one stuffed space (RFC 3676 4.5, 4.4). */
function readLine(written: string): Line {
  let depth = 0
  while (written[depth] === '>') depth += 1
  const text = written.slice(depth)
  return { depth, text: text.startsWith(' ') ? text.slice(1) : text }
}
