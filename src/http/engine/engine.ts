/**
 * engine - the interface between the listener and an HTTP library: requests handed over, answers written
 *
 * Two libraries fit (`uws.ts`, `node.ts`). Status, body and our own headers are the same on both.
 *
 * Spec request.framing, request.head-bytes
 */

/** The libraries, and the choice between them. */
export type EngineName = 'uws' | 'node'

/** A request as its library hands it over. Valid during the call only. */
export interface Incoming {
  /** Names in lower case, values with one character for each UTF-8 sequence. */
  forEach(read: (name: string, value: string) => void): void
  /** In lower case. */
  getMethod(): string
  /** The path, undecoded. */
  getUrl(): string
  /** Undefined or '' if there is none. */
  getQuery(): string | undefined
  /** A parameter of the path's pattern, undecoded. */
  getParameter(index: number): string | undefined
}

/** Takes a request further, piece by piece. */
export interface Receiver {
  /** Called once, before the first piece. */
  start(): void
  /** The piece is valid only during the call. A request without a body has one empty piece. */
  receive(piece: Uint8Array, isLast: boolean): void
  /** The connection ended before the answer did. */
  abort(): void
}

/** Status and headers of an answer. */
export interface AnswerHead {
  readonly status: number
  readonly requestId: string
  /** Null if there is no content. */
  readonly contentType: string | null
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A `Set-Cookie` header each. */
  readonly cookies?: readonly string[] | undefined
}

/** How a whole answer goes out. */
export interface AnswerHow {
  /** HEAD: headers as for GET, and no body. */
  readonly isHead: boolean
  /** The connection ends with this answer. */
  readonly closes: boolean
  /** With `isHead`, the length of the omitted body. */
  readonly length?: number
}

/** The answer to one request. Nothing may be called after an abort, a close or the end. */
export interface ResponseSocket {
  /** The address of the peer. */
  peer(): string
  /** Writes a whole answer in one write. `body` is null if the status has none. */
  answer(head: AnswerHead, body: string | Uint8Array | null, how: AnswerHow): void
  /** Writes the head of an answer that follows in pieces, in the same `cork` as the first piece. */
  begin(head: AnswerHead): void
  /** Writes a piece of an answer of unknown length. Returns false if it waits until the client reads. */
  write(text: string): boolean
  /** Ends an answer of unknown length. */
  end(text: string): void
  /**
   * Writes the part of a body of `size` bytes that the client accepts now. Returns whether it accepted the whole
   * piece, and whether the answer is complete.
   */
  tryEnd(piece: Uint8Array, size: number): [boolean, boolean]
  /** Bytes of the body that `tryEnd` has accepted. */
  getWriteOffset(): number
  /** Called each time that the client accepts more again. */
  onWritable(call: () => void): void
  /** Combines the writes of `write` into one packet. */
  cork(write: () => void): void
  /** Ends the connection at once. */
  close(): void
}

/** Opens a request. */
export type Open = (request: Incoming, wire: ResponseSocket) => Receiver

/** The handler of a method and a path. If several patterns match, the most specific one counts, segment by segment. */
export interface EngineRoute {
  /** `any`: every method that no other route takes, on this path or on a less specific one. */
  readonly method: 'get' | 'head' | 'post' | 'put' | 'patch' | 'del' | 'any'
  /** With `:name` for a segment that is not empty, and `/*` at the end for one or more segments. */
  readonly pattern: string
  readonly open: Open
}

/** A library that listens. */
export interface EngineListener {
  readonly port: number
  /** Accepts no more connections. Those that exist are kept. */
  stop(): void
  /** Ends all connections. */
  end(): void
}

/** Where a library listens. */
export interface EnginePlace {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** The descriptor of an already listening socket; if absent or null, the library opens one. */
  readonly fd?: number | null
  /** Whether other processes may listen on the same port; the kernel spreads connections over all of them. */
  readonly isShared?: boolean
}

/** An HTTP library. */
export interface Engine {
  readonly name: EngineName
  /** Why it is not `uws` although any may be taken; null otherwise. */
  readonly reason: string | null
  /** Whether it can listen with a descriptor. */
  readonly takesSockets: boolean
  /** Whether it can share a port here. */
  readonly canShare: boolean
  /** Listens. Rejects with the system's error, or null if only the failure is known. */
  listen(routes: readonly EngineRoute[], place: EnginePlace): Promise<EngineListener>
}

/** Bytes of a request's head, the request line included. Proxies in front and tracing headers need more than 4 KiB. */
export const HEAD_BYTES_MAX = 16_384
/** Headers of a request: as many as uWebSockets.js reads. */
export const HEAD_FIELDS_MAX = 98
/** Silence after which a connection ends: between two requests, within one, or while a client does not read. */
export const IDLE_S = 10
