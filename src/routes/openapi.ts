/**
 * openapi - GET /v1/openapi.json, and GET /v1/operator/openapi.json on the operator listener
 *
 * A document is built on the first request, and kept as the text that is sent.
 *
 * Spec openapi.document
 */

import { makeOpenapi } from '../../schemas/document/openapi.ts'
import { ROUTES, type Route } from '../../schemas/routes.ts'
import type { HandlerOf } from '../http/request.ts'

/** GET /v1/openapi.json */
export function makeReadOpenapi({ baseUrl }: { readonly baseUrl: string }): HandlerOf<'readOpenapi'> {
  return documentOf('public', baseUrl)
}

/** GET /v1/operator/openapi.json */
export function makeReadOperatorOpenapi({
  operatorUrl,
}: {
  readonly operatorUrl: string
}): HandlerOf<'readOperatorOpenapi'> {
  return documentOf('operator', operatorUrl)
}

function documentOf(listener: Route['listener'], url: string): HandlerOf<'readOpenapi' | 'readOperatorOpenapi'> {
  let text: string | null = null
  return () => {
    text ??= JSON.stringify(makeOpenapi(Object.values(ROUTES), url, listener))
    return { status: 200, text, contentType: 'application/json' }
  }
}
