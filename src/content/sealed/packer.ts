/**
 * packer - makes the object of a segment from its messages, block by block, so that little is in memory at once.
 *
 * The text of each block is recorded by its hash, so that the object is compared with the rows that were read, not
 * with the packed ones.
 */

import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { type LogEntry, unpackLogEntry } from '../../state/message/log-entry.ts'
import { numberOfTag } from '../../state/message/posting.ts'
import { BLOCK_ROWS, packBlock, type SealedMessage, textOfBlock } from './block.ts'
import { type PackedPostings, Postings } from './postings.ts'
import { type BlockPlace, INDEXES, type IndexName, packTail } from './tail.ts'

/** Hash of the text of a block. */
export function computeCheck(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('base64')
}

/** Packs the messages of a segment, oldest first. */
export class SegmentPacker {
  messages = 0
  /** The hash of the text of each block. */
  readonly checks: string[] = []
  readonly #blocks: BlockPlace[] = []
  readonly #postings: Readonly<Record<IndexName, Postings>> = {
    recipient: new Postings(),
    sender: new Postings(),
    tag: new Postings(),
  }
  #rows: SealedMessage[] = []

  /** Adds a message, and its entry if that is known. Returns the block that is full with it, otherwise null. */
  add(row: SealedMessage, entry: LogEntry = unpackLogEntry(row.log)): Promise<Buffer> | null {
    const { sender, recipients, tagHash } = entry
    const place = this.messages
    for (const number of recipients) this.#postings.recipient.add(number, place)
    this.#postings.sender.add(sender, place)
    if (tagHash !== null) this.#postings.tag.add(numberOfTag(tagHash), place)
    this.messages += 1
    this.#rows.push(row)
    return this.#rows.length < BLOCK_ROWS ? null : this.#endBlock()
  }

  /** Every recipient and sender, for the filter. */
  get persons(): number[] {
    return [...new Set([...this.#postings.recipient.numbers, ...this.#postings.sender.numbers])]
  }

  /** The rest of the object behind the blocks that `add` returned: the last block, indexes and tail. */
  async *end(): AsyncGenerator<Buffer, void> {
    if (this.#rows.length > 0) yield await this.#endBlock()
    const indexes = {} as Record<IndexName, PackedPostings>
    for (const name of INDEXES) {
      // Each takes milliseconds for a full segment.
      await turn()
      indexes[name] = this.#postings[name].pack()
      yield indexes[name].bytes
    }
    const { recipient, sender, tag } = indexes
    const pages = { recipient: recipient.pages, sender: sender.pages, tag: tag.pages }
    yield packTail({ blocks: this.#blocks, indexes: pages })
  }

  async #endBlock(): Promise<Buffer> {
    const rows = this.#rows
    this.#rows = []
    const text = textOfBlock(rows)
    this.checks.push(computeCheck(text))
    const bytes = await packBlock(text)
    this.#blocks.push([rows[0]?.entryId ?? '', rows.length, bytes.length])
    return bytes
  }
}
