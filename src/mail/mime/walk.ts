/**
 * walk - the structure of a mail (RFC 2046), in one pass over its bytes and without decoding.
 *
 * States: a stack of open nodes. A line `--boundary` of any open multipart closes the nodes open inside it; the
 * outermost with that boundary counts (RFC 2046 5.1.2). Attached messages are walked too, so that the limits hold
 * inside them; they are kept whole, and problems inside them are not reported. Guarantees: time is linear in the bytes
 * for any nesting; at most 500 nodes, 50 deep.
 *
 * Spec inbound.parse.parts
 */

import type { HardIssue, SoftIssue } from '../../../schemas/inbound.ts'
import { type HeaderBlock, readHeaderBlock } from './header-block.ts'
import { type PartHeader, readPartHeader } from './part-header.ts'

/** Maximum parts of a mail, counting its root, multiparts, leaves and attached messages. */
export const PARTS_MAX = 500
/** The root is at depth 0; a multipart and an attached message each count one. */
export const DEPTH_MAX = 50

/** A part of the mail. */
export interface MimeNode {
  /** `container` is a multipart that cannot be split. */
  kind: 'leaf' | 'multipart' | 'message' | 'container'
  readonly header: PartHeader
  readonly depth: number
  /** In bytes of the mail. */
  readonly start: number
  end: number
  /** Inside an attached message. */
  readonly isInner: boolean
  /** Content type of the multipart around it, null for none. */
  readonly parentType: string | null
}

/** The parts in the order of the document. */
export interface MimeTree {
  readonly nodes: readonly MimeNode[]
  readonly issue: HardIssue | null
}

interface Open {
  readonly node: MimeNode
  /** Null if it is not a multipart, or an outer one has the same. */
  boundary: string | null
  delimiters: number
  isClosed: boolean
}

interface Delimiter {
  readonly lineStart: number
  readonly next: number
  /** Place of its multipart on the stack. */
  readonly place: number
  readonly isLast: boolean
}

const LF = 0x0a
const CR = 0x0d
const DASH = 0x2d

/** Walks a mail whose top fields are read. Adds what is dropped to `soft`. */
export function walkMail(raw: Buffer, top: HeaderBlock, soft: Set<SoftIssue>): MimeTree {
  return new Walk(raw, soft).run(top)
}

class Walk {
  readonly #raw: Buffer
  readonly #soft: Set<SoftIssue>
  readonly #nodes: MimeNode[] = []
  readonly #stack: Open[] = []
  /** Places on the stack by boundary. */
  readonly #boundaries = new Map<string, number>()
  #issue: HardIssue | null = null

  constructor(raw: Buffer, soft: Set<SoftIssue>) {
    this.#raw = raw
    this.#soft = soft
  }

  run(top: HeaderBlock): MimeTree {
    let at = this.#enter(top)
    while (this.#issue === null) {
      const delimiter = this.#boundaries.size === 0 ? null : this.#findDelimiter(at)
      if (delimiter === null) break
      this.#closeAbove(delimiter.place, this.#beforeLine(delimiter.lineStart))
      const open = this.#stack[delimiter.place] as Open
      open.delimiters += 1
      at = delimiter.next
      if (delimiter.isLast) {
        open.isClosed = true
        this.#boundaries.delete(open.boundary as string)
      } else at = this.#enter(this.#readBlock(at))
    }
    if (this.#issue === null) this.#closeAbove(-1, this.#raw.length)
    return { nodes: this.#nodes, issue: this.#issue }
  }

  #readBlock(at: number): HeaderBlock {
    return readHeaderBlock(this.#raw, at, (lineStart) => this.#delimiterAt(lineStart) !== null)
  }

  /** Opens the node whose fields were read, and its attached message. Returns the start of its body. */
  #enter(first: HeaderBlock): number {
    let block = first
    for (;;) {
      if (block.issue !== null) {
        this.#issue = block.issue
        return block.bodyStart
      }
      const node = this.#makeNode(block)
      if (this.#issue !== null) return block.bodyStart
      this.#nodes.push(node)
      this.#open(node)
      if (node.kind !== 'message') return block.bodyStart
      block = this.#readBlock(block.bodyStart)
    }
  }

  #makeNode(block: HeaderBlock): MimeNode {
    const parent = this.#stack.at(-1)?.node ?? null
    const depth = parent === null ? 0 : parent.depth + 1
    // The root is the message, not one of its parts.
    if (this.#nodes.length > PARTS_MAX) this.#issue = 'too_many_parts'
    else if (depth > DEPTH_MAX) this.#issue = 'nesting_too_deep'
    const parentType = parent?.kind === 'multipart' ? parent.header.contentType : null
    const header = readPartHeader(block, parentType === 'multipart/digest' ? 'message/rfc822' : 'text/plain')
    return {
      kind: classifyKind(header),
      header,
      depth,
      start: block.bodyStart,
      end: this.#raw.length,
      isInner: parent !== null && (parent.isInner || parent.kind === 'message'),
      parentType,
    }
  }

  #open(node: MimeNode): void {
    const { boundary } = node.header
    const isUsable = node.kind === 'multipart' && boundary !== null && !this.#boundaries.has(boundary)
    if (isUsable) this.#boundaries.set(boundary, this.#stack.length)
    this.#stack.push({ node, boundary: isUsable ? boundary : null, delimiters: 0, isClosed: false })
  }

  /** Closes the nodes above a place of the stack; all end at `end`. */
  #closeAbove(place: number, end: number): void {
    while (this.#stack.length > place + 1) {
      const { node, boundary, delimiters, isClosed } = this.#stack.pop() as Open
      node.end = Math.max(node.start, end)
      if (boundary !== null && !isClosed) this.#boundaries.delete(boundary)
      if (node.kind !== 'multipart') continue
      if (delimiters === 0) this.#closeUnused(node)
      else if (!isClosed && !node.isInner) this.#soft.add('truncated_multipart')
    }
  }

  /** A multipart without a delimiter. */
  #closeUnused(node: MimeNode): void {
    const isHidden = node.header.boundary !== null && node.header.encoding !== 'identity'
    if (node.depth === 0 && !isHidden) {
      this.#issue = 'missing_boundary'
      return
    }
    node.kind = 'container'
    if (!node.isInner) this.#soft.add('undecodable_container')
  }

  /** The line end before a delimiter belongs to it (RFC 2046 5.1.1). */
  #beforeLine(lineStart: number): number {
    const raw = this.#raw
    if (raw[lineStart - 1] !== LF) return lineStart
    return raw[lineStart - 2] === CR ? lineStart - 2 : lineStart - 1
  }

  /** The first delimiter of an open multipart from a line's beginning on; null for none. */
  #findDelimiter(from: number): Delimiter | null {
    const raw = this.#raw
    const end = raw.length
    let delimiter = this.#delimiterAt(from)
    for (let at = from; delimiter === null && at < end; at += 1)
      if (raw[at] === LF && raw[at + 1] === DASH && raw[at + 2] === DASH) delimiter = this.#delimiterAt(at + 1)
    return delimiter
  }

  /** Blanks at the end of the line are padding of gateways (RFC 2046 5.1.1). */
  #delimiterAt(lineStart: number): Delimiter | null {
    const raw = this.#raw
    if (raw[lineStart] !== DASH || raw[lineStart + 1] !== DASH) return null
    const newline = raw.indexOf(LF, lineStart)
    const lineEnd = newline < 0 ? raw.length : newline
    let end = lineEnd
    while (end > lineStart + 2 && isBlank(raw[end - 1] as number)) end -= 1
    if (end - lineStart > LINE_BYTES_MAX) return null
    const text = raw.toString('latin1', lineStart + 2, end)
    const next = newline < 0 ? raw.length : newline + 1
    const place = this.#boundaries.get(text)
    if (place !== undefined) return { lineStart, next, place, isLast: false }
    const last = text.endsWith('--') ? this.#boundaries.get(text.slice(0, -2)) : undefined
    return last === undefined ? null : { lineStart, next, place: last, isLast: true }
  }
}

/** Far above the 70 characters of RFC 2046, so that a line of megabytes is never made a string. */
const LINE_BYTES_MAX = 4096

function isBlank(octet: number): boolean {
  return octet === 0x20 || octet === 0x09 || octet === CR
}

function classifyKind({ contentType, encoding }: PartHeader): MimeNode['kind'] {
  if (contentType.startsWith('multipart/')) return 'multipart'
  const isMessage = contentType === 'message/rfc822' || contentType === 'message/global'
  // One that is encoded, which RFC 2046 5.2.1 forbids, is a file like any other.
  return isMessage && (encoding ?? 'identity') === 'identity' ? 'message' : 'leaf'
}
