/** page-handlers - which handler answers which page of the public listener; every page has one */

import type { PageName } from '../../schemas/page-routes.ts'
import type { Handler } from '../http/request.ts'
import {
  makeConfirmUnsubscribe,
  makeShowUnsubscribe,
  makeShowUnsubscribeAgain,
  makeUndoUnsubscribe,
  makeUnsubscribeOneClick,
  type UnsubscribeDeps,
} from './unsubscribe.ts'

export type PageDeps = UnsubscribeDeps

/** The handlers, by the names of their pages. */
export function pageHandlers(deps: PageDeps): Readonly<Record<PageName, Handler>> {
  return {
    showUnsubscribe: makeShowUnsubscribe(deps),
    unsubscribeOneClick: makeUnsubscribeOneClick(deps),
    showUnsubscribeAgain: makeShowUnsubscribeAgain(deps),
    confirmUnsubscribe: makeConfirmUnsubscribe(deps),
    showUndo: makeShowUnsubscribeAgain(deps),
    undoUnsubscribe: makeUndoUnsubscribe(deps),
  }
}
