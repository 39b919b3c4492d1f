/**
 * errors - the errors that a caller of the client can distinguish
 *
 * Spec client.errors, error.body, error.issues
 */
import type { RefusalCode } from './shapes/refusals.ts'

/** A field that was refused: where (dotted, empty for the whole body) and why. */
export interface Issue {
  readonly path: string
  readonly message: string
}

/** A refusal as the service answers it. */
export interface Refused {
  readonly error: RefusalCode
  readonly message: string
  readonly issues?: readonly Issue[]
  readonly [field: string]: unknown
}

/** Every error that the client throws. */
export class SendwrightError extends Error {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message)
    this.name = new.target.name
    if (options?.cause !== undefined) this.cause = options.cause
  }

  declare cause?: unknown
}

/** No answer: the connection failed or was lost, or the service did not answer in time. */
export class ConnectionError extends SendwrightError {}

/** A webhook's request that does not have a valid signature. */
export class SignatureError extends SendwrightError {}

/** No message matched in the time that a wait had. */
export class WaitTimeoutError extends SendwrightError {}

interface AnswerParts {
  readonly status: number
  readonly body: Refused | null
  readonly text: string
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null
}

/** An answer other than success. Proxies and the request limit of a client answer in plain text, without a code. */
export class ApiError extends SendwrightError {
  readonly status: number
  /** Code of the refusal; null for an answer in plain text. */
  readonly code: RefusalCode | null
  /** Fields that were refused; empty unless the code is `invalid_request`. */
  readonly issues: readonly Issue[]
  /** The whole answer; null for an answer in plain text. */
  readonly body: Refused | null
  /** Id of the request in the log of the service. */
  readonly requestId: string | null
  /** Seconds after which the same request can succeed, if the service named them. */
  readonly retryAfterSeconds: number | null

  constructor({ status, body, text, requestId, retryAfterSeconds }: AnswerParts) {
    const issues = body?.issues ?? []
    const wrong = issues.map((issue) => `${issue.path || 'body'}: ${issue.message}`).join('; ')
    const message = body?.message ?? text.trim().slice(0, 200)
    super([`${status} ${body?.error ?? ''}`.trim(), message, wrong].filter((part) => part !== '').join(': '))
    this.status = status
    this.code = body?.error ?? null
    this.issues = issues
    this.body = body
    this.requestId = requestId
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** 400, 413, 415, 422: the request is wrong, and the same one fails again. */
export class ValidationError extends ApiError {}

/** 401: the key is missing, malformed, unknown or revoked. */
export class AuthenticationError extends ApiError {}

/** 402, 403: the key or the account does not allow the request. */
export class PermissionError extends ApiError {}

/** 404, 410: there is no such resource, or it is no longer stored. */
export class NotFoundError extends ApiError {}

/** 409: the state of the resource does not allow the request. */
export class ConflictError extends ApiError {}

/** 429: a limit was reached. */
export class LimitError extends ApiError {}

/** 5xx: the service failed or is unavailable. */
export class ServiceError extends ApiError {}

const CLASSES: Readonly<Record<number, new (parts: AnswerParts) => ApiError>> = {
  400: ValidationError,
  401: AuthenticationError,
  402: PermissionError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  413: ValidationError,
  415: ValidationError,
  422: ValidationError,
  429: LimitError,
}

/**
 * The error of an answer, of the class that fits its status.
 * @internal
 */
export function makeError(parts: AnswerParts): ApiError {
  const Class = CLASSES[parts.status] ?? (parts.status >= 500 ? ServiceError : ApiError)
  return new Class(parts)
}
