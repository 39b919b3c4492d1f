/** options - the options of the client, and those of a call */

/** An AbortSignal. */
export interface Signal {
  readonly aborted: boolean
  readonly reason?: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export interface SendwrightOptions {
  /** A server key (`sk_`, `sk_test_`), or an account key (`ak_`) for domains and erasures. */
  readonly key: string
  /** Address of the API. Default: `http://127.0.0.1:8080` */
  readonly url?: string
  /** Retries of a call that can be repeated, 0 to 4. Default: 4 */
  readonly retries?: number
  /** Milliseconds after which an attempt without an answer ends. Default: 40,000 */
  readonly timeoutMs?: number
  /** Takes a key in a browser, where every visitor can read it. Default: false */
  readonly allowBrowser?: boolean
}

export interface CallOptions {
  /** Ends the call, and its retries. */
  readonly signal?: Signal
}

export interface SendOptions extends CallOptions {
  /** A second call with the same key within 24 hours sends nothing. Default: a new one for each call */
  readonly idempotencyKey?: string
}
