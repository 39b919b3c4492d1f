/**
 * report-file - the file of an aggregate report in a mail: found, unpacked and read
 *
 * The bytes decide about the format, because reporters label it in many ways: gzip, a zip file with one entry, XML or
 * JSON. Guarantees: memory does not grow with the unpacked XML, which ends the reading when it exceeds its bounds.
 *
 * Spec reports.formats, reports.bounds
 */

import { createGunzip } from 'node:zlib'
import yauzl, { type Entry, type ZipFile } from 'yauzl'
import { readHeaderBlock } from '../mime/header-block.ts'
import { decodeTransfer } from '../mime/transfer.ts'
import { type MimeNode, walkMail } from '../mime/walk.ts'
import { makeDmarcReader } from './dmarc-xml.ts'
import { type DmarcHead, type DmarcRecord, ReportFault, type TlsHead, type TlsRecord } from './report.ts'
import { readTlsReport } from './tls-json.ts'

/** Bounds of one report. */
export interface ReportBounds {
  readonly packedBytesMax: number
  readonly bytesMax: number
  readonly rowsMax: number
}

/** Receivers of the records of a report. */
export interface ReportTakers {
  readonly dmarc: (record: DmarcRecord) => void
  readonly tls: (record: TlsRecord) => void
}

/** Parts of a mail that may be the file. */
const PARTS_MAX = 50
/** Bytes that show a format, and the encoded bytes that contain them. */
const START_BYTES = 512
const ENCODED_START_BYTES = 2048
/** Bytes of a file that are read at once. */
const PIECE_BYTES = 64 * 1024

type Format = 'gzip' | 'zip' | 'xml' | 'json'

/** Reads the report in a mail. Throws ReportFault. */
export async function readReportMail(
  raw: Buffer,
  bounds: ReportBounds,
  takers: ReportTakers,
): Promise<DmarcHead | TlsHead> {
  const { nodes } = walkMail(raw, readHeaderBlock(raw, 0), new Set())
  const leaves = nodes.filter(({ kind, isInner }) => kind === 'leaf' && !isInner).slice(0, PARTS_MAX)
  // Some reporters write a text before the file, and as HTML it looks like XML.
  for (const leaf of [...leaves.filter((one) => !isText(one)), ...leaves.filter(isText)]) {
    const format = formatOf(startOf(raw, leaf))
    if (format === null) continue
    const file = decodeTransfer(leaf.header.encoding ?? 'identity', raw.subarray(leaf.start, leaf.end))
    if (file.length > bounds.packedBytesMax) throw new ReportFault('too_large', 'its file is too large')
    return await readReportFile(file, bounds, takers)
  }
  throw new ReportFault('malformed', 'the mail has no report')
}

/** Whether a part is read as the text of its mail. */
function isText({ header: { contentType, fileName, disposition } }: MimeNode): boolean {
  return /^text\/(?:plain|html)$/.test(contentType) && fileName === null && disposition !== 'attachment'
}

/** Reads the file of a report. Throws ReportFault. */
export async function readReportFile(
  file: Buffer,
  bounds: ReportBounds,
  takers: ReportTakers,
): Promise<DmarcHead | TlsHead> {
  const pieces = new Unpacked(unpack(file), bounds.bytesMax)
  try {
    const first = await pieces.start()
    const format = formatOf(first)
    if (format === 'json') return await readJson(pieces, { first, bounds, takers })
    if (format !== 'xml') throw new ReportFault('malformed', 'the file is neither XML nor JSON')
    return await readXml(pieces, { first, bounds, takers })
  } catch (error) {
    if (error instanceof ReportFault) throw error
    throw new ReportFault('malformed', 'the file cannot be unpacked')
  } finally {
    await pieces.close()
  }
}

interface Reading {
  readonly first: Buffer
  readonly bounds: ReportBounds
  readonly takers: ReportTakers
}

async function readXml(pieces: Unpacked, { first, bounds, takers }: Reading): Promise<DmarcHead> {
  const count = countRows(bounds)
  const reader = makeDmarcReader((record) => {
    count()
    takers.dmarc(record)
  })
  const decoder = decoderOf(first)
  reader.write(decoder.decode(first, { stream: true }))
  for await (const piece of pieces.rest()) reader.write(decoder.decode(piece, { stream: true }))
  reader.write(decoder.decode())
  return reader.end()
}

async function readJson(pieces: Unpacked, { first, bounds, takers }: Reading): Promise<TlsHead> {
  const count = countRows(bounds)
  const decoder = new TextDecoder()
  const texts = [decoder.decode(first, { stream: true })]
  for await (const piece of pieces.rest()) texts.push(decoder.decode(piece, { stream: true }))
  return readTlsReport(texts.join(''), (record) => {
    count()
    takers.tls(record)
  })
}

function countRows({ rowsMax }: ReportBounds): () => void {
  let rows = 0
  return () => {
    rows += 1
    if (rows > rowsMax) throw new ReportFault('too_large', 'it has too many rows')
  }
}

/** The decoder of an XML file by its declaration; a byte order mark and UTF-8 need none. */
function decoderOf(start: Buffer): InstanceType<typeof TextDecoder> {
  if (start[0] === 0xff && start[1] === 0xfe) return new TextDecoder('utf-16le')
  const declared = /^<\?xml [^<>]{0,80}encoding=["']([\w-]{1,40})["']/.exec(
    start.toString('latin1', 0, 200).trimStart(),
  )
  const encoding = declared?.[1] ?? 'utf-8'
  try {
    // A declaration that is read byte by byte is not in UTF-16, which some programs name all the same.
    return new TextDecoder(/^utf-?16/i.test(encoding) ? 'utf-8' : encoding)
  } catch {
    throw new ReportFault('malformed', 'its encoding is unknown')
  }
}

/** The format of bytes; null for any other. */
function formatOf(start: Buffer): Format | null {
  if (start[0] === 0x1f && start[1] === 0x8b) return 'gzip'
  if (start.toString('latin1', 0, 4) === 'PK\x03\x04') return 'zip'
  const text = start[0] === 0xff && start[1] === 0xfe ? start.toString('utf16le', 2) : start.toString('utf8')
  if (/^[\ufeff\s]{0,100}<(?:\?xml|!DOCTYPE|!--|(?:\w{1,20}:)?feedback)/i.test(text)) return 'xml'
  return /^[\ufeff\s]{0,100}\{/.test(text) ? 'json' : null
}

/** The first bytes of a part. */
function startOf(raw: Buffer, { start, end, header }: MimeNode): Buffer {
  const bytes = raw.subarray(start, Math.min(end, start + ENCODED_START_BYTES))
  return decodeTransfer(header.encoding ?? 'identity', bytes).subarray(0, START_BYTES)
}

/** The content of a file. */
async function* unpack(file: Buffer): AsyncGenerator<Buffer> {
  const format = formatOf(file.subarray(0, START_BYTES))
  if (format === 'gzip') {
    const gunzip = createGunzip({ chunkSize: PIECE_BYTES })
    gunzip.end(file)
    yield* gunzip as AsyncIterable<Buffer>
  } else if (format === 'zip') yield* unzip(file)
  else for (let at = 0; at < file.length; at += PIECE_BYTES) yield file.subarray(at, at + PIECE_BYTES)
}

/** The first file of a zip file. */
async function* unzip(file: Buffer): AsyncGenerator<Buffer> {
  const zip = await yauzl.fromBufferPromise(file, { lazyEntries: true })
  try {
    const entry = await firstFile(zip)
    yield* (await zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>
  } finally {
    zip.close()
  }
}

async function firstFile(zip: ZipFile): Promise<Entry> {
  let seen = 0
  for await (const entry of zip.eachEntry()) {
    if (!entry.fileName.endsWith('/')) return entry
    seen += 1
    if (seen > PARTS_MAX) break
  }
  throw new ReportFault('malformed', 'the zip file is empty')
}

/** Unpacked bytes, up to a maximum. */
class Unpacked {
  readonly #pieces: AsyncGenerator<Buffer>
  readonly #bytesMax: number
  #bytes = 0

  constructor(pieces: AsyncGenerator<Buffer>, bytesMax: number) {
    this.#pieces = pieces
    this.#bytesMax = bytesMax
  }

  /** The first pieces, long enough to show the format. */
  async start(): Promise<Buffer> {
    const pieces: Buffer[] = []
    let bytes = 0
    while (bytes < START_BYTES) {
      const piece = await this.#next()
      if (piece === null) break
      pieces.push(piece)
      bytes += piece.length
    }
    return Buffer.concat(pieces)
  }

  async *rest(): AsyncGenerator<Buffer> {
    for (let piece = await this.#next(); piece !== null; piece = await this.#next()) yield piece
  }

  /** Ends the unpacking. */
  async close(): Promise<void> {
    await this.#pieces.return(undefined).catch(() => undefined)
  }

  async #next(): Promise<Buffer | null> {
    const { done, value } = await this.#pieces.next()
    if (done === true) return null
    this.#bytes += value.length
    if (this.#bytes > this.#bytesMax) throw new ReportFault('too_large', 'unpacked, it is too large')
    return value
  }
}
