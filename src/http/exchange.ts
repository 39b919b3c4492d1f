/**
 * exchange - one request from its first byte to its answer
 *
 * States: receiving (head known, body coming), draining (refused: the rest of the body is counted and discarded),
 * working (the handler has it), over (answered, closed or aborted). Guarantees: at most one answer; nothing is written
 * after an abort; a handler's error becomes a 500 or 503 without details.
 * Spec refusal.order, request.framing, request.body.max, request.body.slow, request.id
 */

import type { Route } from '../../schemas/routes.ts'
import { clientNetwork } from '../mail/ip-address.ts'
import { admit, REPEATED, readKey, unauthorized } from './admit.ts'
import { type Content, joinPieces, readContent } from './body.ts'
import { DASHBOARD_HEADERS, readSession } from './dashboard-edge.ts'
import { presented } from './door.ts'
import { startDownload } from './download.ts'
import type { Receiver, ResponseSocket } from './engine/engine.ts'
import { startFeed } from './feed.ts'
import type { KeyOwner, ParsedKey } from './key.ts'
import { startPieces } from './pieces.ts'
import type { Connection, EdgeRequest, Handler, ListenerContext, RequestHead, Target } from './request.ts'
import { newRequestId } from './request-id.ts'
import { logAnswer } from './request-log.ts'
import type { Answer, LongAnswer, Reply } from './respond.ts'
import { RATE_REFUSAL, refusalReply, refuseFault, SIZE_REFUSAL } from './respond.ts'
import { writeReply } from './write-response.ts'

const NOTHING = Buffer.alloc(0)

/** One request. Made by the wrapper, which hands it data and the abort. */
export class Exchange implements Receiver, Connection {
  readonly #desk: ListenerContext
  readonly #wire: ResponseSocket
  readonly #target: Target
  readonly #head: RequestHead
  readonly #requestId = newRequestId()
  /** Monotonic ms; set when a body turns out to come in pieces. */
  startedAtMs = 0
  get isLarge(): boolean {
    return this.#target.held !== null
  }

  /** Monotonic ms. */
  readonly #headAtMs = performance.now()
  #owner: KeyOwner | null = null
  /** The key, while its owner came out of memory: it may have been revoked since. */
  #unproven: ParsedKey | null = null
  /** Undefined while the key is looked up; null: admitted. */
  #refusal: Reply | null | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  #heldBytes = 0
  #isWhole = false
  #isOver = false
  #isWorking = false
  #isReleased = false
  #endFeed: (() => void) | null = null
  #request: (EdgeRequest & { aborted: boolean }) | null = null

  constructor(desk: ListenerContext, wire: ResponseSocket, target: Target, head: RequestHead) {
    this.#desk = desk
    this.#wire = wire
    this.#target = target
    this.#head = head
    desk.inHand++
    desk.opened++
  }

  /** Takes the request in as far as its head decides. */
  start(): void {
    const { headers } = this.#head
    if (!this.#isWithinRate()) this.#answer(RATE_REFUSAL)
    // The library would read on behind an answer, and could take a body for a request. Spec request.framing
    else if (headers.isFramedTwice) this.cut()
    else if (headers.repeated !== null) this.#answer(REPEATED[headers.repeated])
    else if (Number(headers.contentLength) > this.#target.bodyBytesMax) this.#tooLarge()
    else this.#identify(headers.authorization)
  }

  /** Receives a piece of the body, which is valid only during the call. */
  receive(chunk: Uint8Array, isLast: boolean): void {
    if (this.#isOver || this.#isWhole) return
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#target.bodyBytesMax) {
      this.#tooLarge()
      return
    }
    if (chunk.byteLength > 0 && this.#target.check?.body != null && !this.#isRefused()) this.#hold(chunk, isLast)
    if (!isLast) {
      if (this.startedAtMs === 0) {
        this.startedAtMs = performance.now()
        this.#desk.receiving.add(this)
      }
      return
    }
    // Fields behind a chunked body end the connection while the received bytes are read, before anything is accepted.
    if (this.#head.headers.isChunked) setImmediate(() => this.#finish())
    else this.#finish()
  }

  /** The body is whole. */
  #finish(): void {
    this.#isWhole = true
    this.#desk.receiving.delete(this)
    this.#proceed()
  }

  /** The client is gone, so nothing may be written any longer. */
  abort(): void {
    this.#endFeed?.()
    if (this.#isOver) return
    this.#isOver = true
    if (this.#request !== null) this.#request.aborted = true
    if (!this.#isWorking) this.#release()
  }

  onEnd(end: () => void): void {
    this.#drop()
    this.#endFeed = end
    this.#desk.feeds.add(end)
    if (this.#isOver || this.#desk.isClosing) end()
  }

  /** Ends the connection without an answer. */
  cut(): void {
    if (this.#isOver) return
    this.abort()
    this.#wire.close()
  }

  // Spec request.client
  #isWithinRate(): boolean {
    const { clientAddress } = this.#desk
    // Without a rate of the listener, the client's address is not determined.
    const rate = this.#desk.rate === null ? null : (this.#target.rate ?? this.#desk.rate)
    return rate === null || rate.take(clientNetwork(clientAddress(this.#head.peer, this.#head.headers.forwardedFor)))
  }

  #identify(authorization: string): void {
    const { gate } = this.#target
    if (gate.session !== null) {
      this.#identifySession(gate.needsKey)
      return
    }
    const known = gate.needsKey ? this.#desk.knownKeys.get(authorization) : undefined
    if (known !== undefined) {
      this.#unproven = known.parsed
      this.#admit(known.owner)
      return
    }
    const parsed = gate.needsKey ? readKey(gate, authorization) : null
    try {
      const found = parsed === null ? null : this.#desk.keys(parsed)
      if (found instanceof Promise) {
        found.then(
          (owner) => {
            this.#know(parsed, owner)
            this.#admit(owner)
          },
          (fault) => this.#keyless(fault),
        )
      } else {
        this.#unproven = found === null ? null : parsed
        this.#know(parsed, found)
        this.#admit(found)
      }
    } catch (fault) {
      this.#keyless(fault)
    }
  }

  /** A session is read again each time, because the role of its member may have changed. */
  #identifySession(isNeeded: boolean): void {
    const { dashboard, keys } = this.#desk
    const parsed = dashboard === null ? null : readSession(dashboard, this.#head.headers.cookie)
    if (parsed === null) {
      this.#admit(null)
      return
    }
    Promise.resolve(keys(parsed, true)).then(
      (owner) => this.#admit(owner?.kind === 'session' ? owner : null),
      (fault) => (isNeeded ? this.#keyless(fault) : this.#admit(null)),
    )
  }

  #know(parsed: ParsedKey | null, owner: KeyOwner | null): void {
    if (parsed !== null && owner !== null) this.#desk.knownKeys.add(this.#head.headers.authorization, { parsed, owner })
  }

  /**
   * Refuses requests that never reach a handler. A key revoked in the meantime gets only that refusal. Spec key.revoke
   */
  #refuse(refusal: Reply): void {
    if (this.#unproven === null) {
      this.#answer(refusal)
      return
    }
    this.#isWorking = true
    Promise.resolve(this.#desk.keys(this.#unproven, true)).then(
      (owner) => {
        if (owner === null) this.#desk.knownKeys.delete(this.#head.headers.authorization)
        this.#answer(owner === null ? unauthorized(this.#head.headers.authorization) : refusal)
      },
      (fault) => {
        this.#logFault(fault, 'Key lookup failed')
        this.#answer(refusalReply('unavailable'))
      },
    )
  }

  #isRefused(): boolean {
    return this.#refusal !== null && this.#refusal !== undefined
  }

  #hold(chunk: Uint8Array, isLast: boolean): void {
    if (!(this.#target.held ?? this.#desk.held).take(chunk.byteLength)) {
      this.#refusal = refusalReply('unavailable')
      this.#drop()
      return
    }
    this.#heldBytes += chunk.byteLength
    // The bytes go away with the call. A body in one piece that can be used at once need not be copied.
    const isOnlyPiece = isLast && this.#chunks.length === 0 && !this.#head.headers.isChunked
    const isUsedNow = isOnlyPiece && this.#refusal === null && this.#target.held === null
    const { buffer, byteOffset, byteLength } = isUsedNow ? chunk : new Uint8Array(chunk)
    // A copy with its own memory, never part of a pool, because a piece may be transferred to a thread.
    this.#chunks.push(Buffer.from(buffer, byteOffset, byteLength))
  }

  #admit(owner: KeyOwner | null): void {
    if (this.#isOver || this.#isRefused()) return
    this.#owner = owner
    this.#refusal = admit(this.#target.gate, this.#head.headers, owner, this.#desk.dashboard)
    if (this.#refusal !== null) this.#drop()
    if (this.#isWhole) this.#proceed()
  }

  /** The key could not be looked up, and nothing was accepted. */
  #keyless(fault: unknown): void {
    this.#logFault(fault, 'Key lookup failed')
    if (this.#isOver) return
    this.#refusal = refusalReply('unavailable')
    this.#drop()
    if (this.#isWhole) this.#proceed()
  }

  /** Goes on once head and body are both there. */
  #proceed(): void {
    if (this.#isOver || this.#refusal === undefined) return
    const { check, handle, route } = this.#target
    if (this.#refusal !== null) {
      this.#refuse(this.#refusal)
    } else if (check !== null && handle !== null && route !== null) {
      const pieces = this.#chunks
      this.#chunks = []
      const bytes = route.takesPieces || pieces.length === 0 ? NOTHING : joinPieces(pieces)
      const read = readContent(route.takesPieces ? { ...check, body: null } : check, bytes, this.#head.query)
      if ('refusal' in read) this.#refuse(read.refusal)
      else this.#work(handle, this.#makeRequest(route, read.content, route.takesPieces ? pieces : []))
    }
  }

  #makeRequest(route: Route, { body, query }: Content, pieces: readonly Buffer[]): EdgeRequest {
    this.#request = {
      requestId: this.#requestId,
      route,
      params: this.#head.params,
      query,
      body,
      idempotencyKey: route.isIdempotent ? this.#head.headers.idempotencyKey : null,
      lastEventId: route.takesLastEventId ? this.#head.headers.lastEventId : null,
      accept: this.#head.headers.accept,
      acceptLanguage: this.#head.headers.acceptLanguage,
      acceptEncoding: this.#head.headers.acceptEncoding,
      key: this.#owner,
      pieces,
      client: this.#clientOf(route),
      cookies: route.session === null ? '' : this.#head.headers.cookie,
      userAgent: this.#head.headers.userAgent,
      fetchDest: this.#head.headers.fetchDest,
      named: this.#head.headers.named,
      aborted: false,
      connection: this,
    }
    return this.#request
  }

  // Spec request.client
  #clientOf({ session }: Route): string {
    const { peer, headers } = this.#head
    return session === null ? '' : clientNetwork(this.#desk.clientAddress(peer, headers.forwardedFor))
  }

  #work(handle: Handler, request: EdgeRequest): void {
    this.#isWorking = true
    try {
      const outcome = handle(request)
      if (outcome instanceof Promise) {
        outcome.then(
          (answer) => this.#answer(answer),
          (fault) => this.#fail(fault),
        )
      } else {
        this.#answer(outcome)
      }
    } catch (fault) {
      this.#fail(fault)
    }
  }

  #fail(fault: unknown): void {
    this.#logFault(fault, 'Request faulted')
    this.#answer(refuseFault(fault))
  }

  // Spec request.body.max
  #tooLarge(): void {
    // The library discards further bytes until its idle timeout, because a reset would overtake the answer.
    this.#answer({ ...SIZE_REFUSAL, headers: { Connection: 'close' } })
  }

  #answer(answer: Answer): void {
    this.#isWorking = false
    const isLong = 'read' in answer || 'pieces' in answer
    if (isLong && !this.#isOver) {
      this.#stream(answer)
      return
    }
    this.#release()
    if (isLong) answer.end?.(false)
    else if ('start' in answer && (this.#isOver || this.#head.isHead)) answer.skip?.()
    if (this.#isOver || isLong) return
    this.#isOver = true
    if ('close' in answer) this.#wire.close()
    else if (!('start' in answer)) this.#write(answer)
    else if (this.#head.isHead) this.#write({ status: 200, text: '', contentType: 'text/event-stream' })
    else {
      this.#endFeed = startFeed(this.#wire, this.#desk, { feed: answer, requestId: this.#requestId })
      this.#tell({ status: 200 })
    }
  }

  /** The request is in hand until its last byte is, so that a stop waits for it. */
  #stream(answer: LongAnswer): void {
    this.#isOver = true
    this.#drop()
    const done = (fault?: unknown): void => {
      if (fault !== undefined) this.#logFault(fault, 'Answer was cut off')
      this.#release()
    }
    const of = { requestId: this.#requestId, range: this.#head.headers.range, isHead: this.#head.isHead, done }
    if ('pieces' in answer) this.#endFeed = startPieces(this.#wire, this.#desk, { answer, ...of })
    else this.#endFeed = startDownload(this.#wire, this.#desk, { download: answer, ...of })
    this.#tell({ status: 200 })
  }

  #write(answer: Reply): void {
    const requestId = this.#requestId
    const isKept = this.#target.gate.session === null
    const shown = presented(this.#target.door, answer, this.#head.headers)
    const reply = isKept ? shown : { ...shown, headers: { ...DASHBOARD_HEADERS, ...shown.headers } }
    try {
      writeReply(this.#wire, reply, { requestId, isHead: this.#head.isHead, closes: this.#desk.isClosing })
    } catch (fault) {
      this.#logFault(fault, 'Answer could not be written')
      this.#wire.close()
    }
    this.#tell({ ...answer, status: reply.status })
    this.#desk.log.debug({ requestId, route: this.#target.route?.name, status: reply.status }, 'Answered')
  }

  /** Counts an answer, records it in the log of its account, and logs refusals and failures for the operator. */
  #tell({ status, json, messageIds }: Reply): void {
    const [requestId, owner, head, target] = [this.#requestId, this.#owner, this.#head, this.#target]
    const ms = performance.now() - this.#headAtMs
    target.tally.answered(status, ms)
    logAnswer(this.#desk, { requestId, owner, head, target, status, json, messageIds, ms })
  }

  #drop(): void {
    this.#chunks = []
    ;(this.#target.held ?? this.#desk.held).give(this.#heldBytes)
    this.#heldBytes = 0
  }

  #release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#drop()
    if (this.#endFeed !== null) this.#desk.feeds.delete(this.#endFeed)
    this.#desk.receiving.delete(this)
    this.#desk.inHand--
  }

  #logFault(fault: unknown, text: string): void {
    const stack = fault instanceof Error ? fault.stack : typeof fault
    this.#desk.log.error({ requestId: this.#requestId, route: this.#target.route?.name, fault: stack }, text)
  }
}
