/**
 * storage-backend - the storage of sealed objects, either local files or S3: the operations of both, and their
 * failures
 */

/** The first bytes of a sealed object, and how many it has. */
export interface Front {
  readonly size: number
  readonly bytes: Buffer
}

/** An object as a list shows it. */
export interface Listed {
  readonly name: string
  /** When it was written, by the home's clock. */
  readonly writtenAtMs: number
}

/** The part of an object to read. */
export interface SealedSpan {
  readonly from: number
  readonly length: number
}

/** One home. Every call rejects with a HomeFailure and with nothing else. Names are those of `isObjectName`. */
export interface StorageBackend {
  readonly kind: 'file' | 's3'
  /** The identity in its file; null if there is none. */
  readId(): Promise<string | null>
  /** Gives the home its identity if it has none. */
  writeId(id: string): Promise<void>
  /**
   * Writes one object under each of the names. It is durable once this resolves; after a failure none of the names
   * exists.
   */
  write(names: readonly string[], sealed: AsyncIterable<Buffer>): Promise<void>
  /** Its first `bytes` bytes; null if there is no such object. */
  front(name: string, bytes: number): Promise<Front | null>
  /** Reads a part of it. It is opened with the first piece and closed with the last. */
  read(name: string, span: SealedSpan): AsyncIterable<Buffer>
  /** Removes objects; one that is not there is removed. */
  remove(names: readonly string[]): Promise<void>
  /** Days of `<shard>/<tree>` that hold something, in order. */
  days(prefix: string): Promise<string[]>
  /** The objects under `<shard>/<tree>/<day>`. */
  list(prefix: string): AsyncIterable<Listed>
  /** Removes `<shard>/<tree>/<day>` with its contents. Returns the number of objects. */
  removeDay(prefix: string): Promise<number>
  /** Removes unfinished writes of workers for which `isLiving` is false. Returns their number. */
  sweepUnfinished(isLiving: (worker: string) => boolean): Promise<number>
  close(): Promise<void>
}

/** `full`: there is no room; `away`: it does not answer, refuses us or cannot be written to. */
export type FailureKind = 'full' | 'away'

/** The failed operation of a home, with a short reason. */
export class StorageFailure extends Error {
  readonly kind: FailureKind

  constructor(kind: FailureKind, reason: string) {
    super(reason)
    this.kind = kind
  }
}

const FULL_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** The failure that an error of the system is; one that is a failure already stays as it is. */
export function toStorageFailure(error: unknown): StorageFailure {
  if (error instanceof StorageFailure) return error
  const { code, message } = error as NodeJS.ErrnoException
  // A message of the system names the path, which names no person.
  return new StorageFailure(code !== undefined && FULL_CODES.has(code) ? 'full' : 'away', message)
}
