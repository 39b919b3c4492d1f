/**
 * page-routes - pages for people, as data: for recipients of mail, and the dashboard; no key, any body, any query
 *
 * They are beside the table of routes, because they are no part of the interface for programs. No document names them,
 * and their answers are HTML. GET changes nothing: scanners open links.
 *
 * Spec unsubscribe.page, unsubscribe.one-click
 */

import { type Method, type Route, route } from './route.ts'

/** Programs on the way add parameters to links. */
const ANY_QUERY = { type: 'object', properties: {}, additionalProperties: true } as const
const BODY_BYTES_MAX = 65_536
/** Providers post one-click requests of all their users from few addresses. */
const POSTS_PER_SECOND = 100

function page(name: string, method: Method, path: string): Route {
  const ratePerSecond = method === 'POST' ? POSTS_PER_SECOND : null
  const success = { status: 200, body: null, media: 'text/html' }
  return {
    ...route(name, method, path, { keys: [], query: ANY_QUERY, success }),
    bodyBytesMax: BODY_BYTES_MAX,
    ratePerSecond,
  }
}

export const PAGE_ROUTES = {
  showUnsubscribe: page('showUnsubscribe', 'GET', '/u/{token}'),
  unsubscribeOneClick: page('unsubscribeOneClick', 'POST', '/u/{token}'),
  showUnsubscribeAgain: page('showUnsubscribeAgain', 'GET', '/u/{token}/confirm'),
  confirmUnsubscribe: page('confirmUnsubscribe', 'POST', '/u/{token}/confirm'),
  showUndo: page('showUndo', 'GET', '/u/{token}/undo'),
  undoUnsubscribe: page('undoUnsubscribe', 'POST', '/u/{token}/undo'),
  showFront: page('showFront', 'GET', '/'),
  showDashboard: page('showDashboard', 'GET', '/dashboard'),
  showDashboardFile: page('showDashboardFile', 'GET', '/dashboard/*'),
  showDocs: page('showDocs', 'GET', '/docs'),
  showDocsFile: page('showDocsFile', 'GET', '/docs/*'),
} satisfies Record<string, Route>

/** Pages that `DOCS=off` removes. Spec docs.page */
export const DOCS_PAGES: readonly string[] = ['showDocs', 'showDocsFile']

export type PageName = keyof typeof PAGE_ROUTES

/** Pages of the operator's listener. */
export const OPERATOR_PAGE_ROUTES = {
  showDesk: { ...page('showDesk', 'GET', '/'), listener: 'operator' },
  showDeskFile: { ...page('showDeskFile', 'GET', '/dashboard/*'), listener: 'operator' },
} as const satisfies Record<string, Route>
