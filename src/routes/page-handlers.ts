/** page-handlers - which handler answers which page of a listener; every page has one */

import type { OPERATOR_PAGE_ROUTES, PageName } from '../../schemas/page-routes.ts'
import type { Handler } from '../http/request.ts'
import { readVersion } from '../process/version.ts'
import { makeDashboard, readPages } from './pages/dashboard-page.ts'
import { makeDocs, readSite } from './pages/docs-page.ts'
import { type FrontPage, makeFront } from './pages/front-page.ts'
import {
  makeConfirmUnsubscribe,
  makeShowUnsubscribe,
  makeShowUnsubscribeAgain,
  makeUndoUnsubscribe,
  makeUnsubscribeOneClick,
  type UnsubscribeDeps,
} from './unsubscribe.ts'

export type PageDeps = UnsubscribeDeps

/**
 * The handlers, by the names of their pages. Takes their dependencies, the public URL of the listener, and whether it
 * serves the documentation.
 */
export function pageHandlers(
  deps: PageDeps,
  { baseUrl, hasDocs }: Pick<FrontPage, 'baseUrl' | 'hasDocs'>,
): Readonly<Record<PageName, Handler>> {
  const pages = readPages()
  const dashboard = makeDashboard(pages, 'public')
  const docs = makeDocs(readSite())
  return {
    showUnsubscribe: makeShowUnsubscribe(deps),
    unsubscribeOneClick: makeUnsubscribeOneClick(deps),
    showUnsubscribeAgain: makeShowUnsubscribeAgain(deps),
    confirmUnsubscribe: makeConfirmUnsubscribe(deps),
    showUndo: makeShowUnsubscribeAgain(deps),
    undoUnsubscribe: makeUndoUnsubscribe(deps),
    showFront: makeFront({ version: readVersion(), baseUrl, hasDocs, hasDashboard: pages.size > 0 }),
    showDashboard: dashboard,
    showDashboardFile: dashboard,
    showDocs: docs,
    showDocsFile: docs,
  }
}

/** The handlers of the operator's pages. */
export function operatorPageHandlers(): Readonly<Record<keyof typeof OPERATOR_PAGE_ROUTES, Handler>> {
  const desk = makeDashboard(readPages(), 'operator')
  return { showDesk: desk, showDeskFile: desk }
}
