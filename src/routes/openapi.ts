/**
 * openapi - GET /v1/openapi.json
 *
 * The document is made once, on the first request, and kept as the text that is sent.
 *
 * Spec openapi.document
 */

import { makeOpenapi } from '../../schemas/openapi.ts'
import { ROUTES } from '../../schemas/routes.ts'
import type { Handler } from '../http/request.ts'

/** GET /v1/openapi.json */
export function makeReadOpenapi({ baseUrl }: { readonly baseUrl: string }): Handler {
  let text: string | null = null
  return () => {
    text ??= JSON.stringify(makeOpenapi(Object.values(ROUTES), baseUrl))
    return { status: 200, text, contentType: 'application/json' }
  }
}
