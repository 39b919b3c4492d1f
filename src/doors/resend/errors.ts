/**
 * errors - our refusals as Resend's client reads them: `{statusCode, name, message}`
 */

import type { Issue } from '../../../schemas/error.ts'
import type { Reply } from '../../http/respond.ts'
import type { OwnRefusal } from '../common/own-api.ts'

/** A refusal as the client reads it. */
interface ResendError {
  readonly statusCode: number
  readonly name: string
  readonly message: string
}

type Shape = Pick<ResendError, 'name' | 'statusCode'>

/** Status and name of each code; a code that is not listed keeps our status. */
const SHAPES: Readonly<Record<string, Shape>> = {
  method_not_allowed: { statusCode: 405, name: 'method_not_allowed' },
  wrong_token_kind: { statusCode: 401, name: 'restricted_api_key' },
  idempotency_key_reused: { statusCode: 409, name: 'invalid_idempotent_request' },
  payment_required: { statusCode: 403, name: 'validation_error' },
  not_found: { statusCode: 404, name: 'not_found' },
  content_expired: { statusCode: 404, name: 'not_found' },
  domain_not_verified: { statusCode: 403, name: 'validation_error' },
  domain_exists: { statusCode: 403, name: 'validation_error' },
  message_not_scheduled: { statusCode: 422, name: 'validation_error' },
  rate_limited: { statusCode: 429, name: 'rate_limit_exceeded' },
  scheduled_limit: { statusCode: 429, name: 'rate_limit_exceeded' },
  cap_reached: { statusCode: 429, name: 'monthly_quota_exceeded' },
  internal_error: { statusCode: 500, name: 'internal_server_error' },
  data_damaged: { statusCode: 503, name: 'application_error' },
  unavailable: { statusCode: 503, name: 'application_error' },
}
const MISSING = 'Required'

/** The answer for a refusal of ours. Takes whether the request had a key. */
export function presentRefusal({ json, text, bytes: _, contentType: __, ...rest }: Reply, hasKey: boolean): Reply {
  const refusal = (json ?? {}) as OwnRefusal
  const shape = convertError(refusal, { status: rest.status, hasKey })
  const message = refusal.error === 'unauthorized' ? keyMessage(hasKey) : formatRefusal(refusal, text)
  return { ...rest, status: shape.statusCode, json: { ...shape, message } satisfies ResendError }
}

function convertError({ error, issues }: OwnRefusal, { status, hasKey }: { status: number; hasKey: boolean }): Shape {
  if (error === 'unauthorized') return { statusCode: 401, name: hasKey ? 'invalid_api_key' : 'missing_api_key' }
  if (error === 'invalid_request') return invalidShape(issues)
  // The edge's own refusals have no code.
  if (error === undefined && status === 429) return { statusCode: 429, name: 'rate_limit_exceeded' }
  return SHAPES[error ?? ''] ?? { statusCode: status, name: 'validation_error' }
}

function invalidShape(issues: readonly Issue[] | undefined): Shape {
  const [first] = issues ?? []
  if (first === undefined) return { statusCode: 400, name: 'invalid_idempotency_key' }
  const { path, message } = first
  if (path === '') return { statusCode: 400, name: 'validation_error' }
  if (message === MISSING) return { statusCode: 422, name: 'missing_required_field' }
  const field = path.replace(/^\d+\./, '')
  if (/^attachments\b/.test(field)) return { statusCode: 422, name: 'invalid_attachment' }
  if (/^from\b/.test(field)) return { statusCode: 422, name: 'invalid_from_address' }
  return { statusCode: 422, name: 'validation_error' }
}

function keyMessage(hasKey: boolean): string {
  return hasKey ? 'API key is invalid' : 'Missing API key in the authorization header'
}

/** The sentence of a refusal. Takes a refusal, and the text of one without a JSON body. */
export function formatRefusal({ error, message, issues, domain }: OwnRefusal, text?: string): string {
  const [first] = issues ?? []
  if (error === 'domain_not_verified')
    return `The ${domain} domain is not verified. Add it to the account and verify its DNS records.`
  if (first === undefined) return message ?? text ?? 'Refused'
  if (first.message === MISSING) return `Missing \`${first.path}\` field.`
  return first.path === '' ? first.message : `Invalid \`${first.path}\` field: ${first.message}`
}
