/**
 * unsubscribe - GET and POST /u/{token}, /confirm and /undo: how the recipient of a mail on a broadcast stream leaves
 * it
 *
 * The link is sufficient for leaving: no key, no cookie, no redirect. GET changes nothing. A POST to the link itself
 * is one-click (RFC 8058), with any body; the page's button posts to /confirm and can be undone for a minute.
 *
 * Spec unsubscribe.page, unsubscribe.one-click, unsubscribe.minute
 */

import type { Ask, AskResult } from '../../cluster/work.ts'
import type { ClickBody, UndoReply, UnsubscribeBody, UnsubscribeReply } from '../actors/message/unsubscribe.ts'
import type { ClickSource } from '../actors/suppression/click.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import type { Answer } from '../http/respond.ts'
import { parseUnsubscribeToken, type UnsubscribeTarget } from '../mail/unsubscribe-token.ts'
import type { Metrics } from '../process/metrics.ts'
import type { Secrets } from '../process/secrets.ts'
import type { Reader } from '../views/key.ts'
import { type FoundClicker, findClicker } from '../views/message/unsubscribe.ts'
import { type PageView, pageReply } from './unsubscribe-page.ts'
import { chooseLanguage } from './unsubscribe-texts.ts'

/** Dependencies of the pages. */
export interface UnsubscribeDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly secrets: Pick<Secrets, 'tokenKey'>
  readonly metrics: Pick<Metrics, 'unsubscribed'>
}

/** Paths from the handler of one path to another; all are relative. */
const FROM_LINK = (token: string) => ({ confirm: `${token}/confirm`, undo: `${token}/undo` })
const BESIDE = () => ({ confirm: 'confirm', undo: 'undo' })

interface Named {
  readonly target: UnsubscribeTarget
  readonly found: FoundClicker
}

/** GET /u/{token} */
export function makeShowUnsubscribe(deps: UnsubscribeDeps): Handler {
  return show(deps, (token) => FROM_LINK(token).confirm)
}

/** GET /u/{token}/confirm and /u/{token}/undo, for a browser that reloads its last page. */
export function makeShowUnsubscribeAgain(deps: UnsubscribeDeps): Handler {
  return show(deps, () => BESIDE().confirm)
}

/** POST /u/{token}. Answers 200 without a body, or 404 for an invalid link. Spec unsubscribe.one-click */
export function makeUnsubscribeOneClick(deps: UnsubscribeDeps): Handler {
  return async (request) => {
    const named = await findNamed(deps, request)
    const view = typeof named === 'string' ? { kind: named } : await click(deps, named, 'one_click')
    if (view === 'unknown') return { close: true }
    deps.metrics.unsubscribed('one_click', view.kind)
    if (view.kind === 'clicked' || view.kind === 'listed') return { status: 200, text: '' }
    return { ...pageReply(view, languageOf(request)), ...(view.kind === 'gone' && { status: 404 }) }
  }
}

/** POST /u/{token}/confirm */
export function makeConfirmUnsubscribe(deps: UnsubscribeDeps): Handler {
  return posted(deps, 'link', async (named) => {
    const view = await click(deps, named, 'link')
    return view === 'unknown' || view.kind !== 'clicked' ? view : { ...view, action: BESIDE().undo }
  })
}

/** POST /u/{token}/undo */
export function makeUndoUnsubscribe(deps: UnsubscribeDeps): Handler {
  return posted(deps, 'undo', async (named) => {
    const { item, shard } = named.found
    const body: ClickBody = { item, hmac: named.target.hmac }
    const view = viewOf<UndoReply>(await deps.ask(shard, { name: 'undo-unsubscribe', cmdId: deps.newCmdId(), body }))
    return view === 'unknown' || view.kind !== 'undone' ? view : { ...view, action: BESIDE().confirm }
  })
}

function show(deps: UnsubscribeDeps, actionOf: (token: string) => string): Handler {
  return async (request) => {
    const named = await findNamed(deps, request)
    const view: PageView =
      typeof named === 'string'
        ? { kind: named }
        : { kind: 'ask', from: named.found.from, action: actionOf((request.params.token ?? '').toLowerCase()) }
    deps.metrics.unsubscribed('view', view.kind)
    return pageReply(view, languageOf(request))
  }
}

function posted(
  deps: UnsubscribeDeps,
  act: 'link' | 'undo',
  perform: (named: Named) => Promise<PageView | 'unknown'>,
): Handler {
  return async (request): Promise<Answer> => {
    const named = await findNamed(deps, request)
    const view = typeof named === 'string' ? { kind: named } : await perform(named)
    if (view === 'unknown') return { close: true }
    deps.metrics.unsubscribed(act, view.kind)
    return pageReply(view, languageOf(request))
  }
}

async function findNamed(
  deps: UnsubscribeDeps,
  { params }: EdgeRequest,
): Promise<Named | 'forged' | 'gone' | 'unavailable'> {
  const target = parseUnsubscribeToken(deps.secrets.tokenKey, params.token ?? '')
  if (target === null) return 'forged'
  const found = await findClicker(deps.read, target, deps.nowMs())
  return typeof found === 'string' ? found : { target, found }
}

async function click(
  deps: UnsubscribeDeps,
  { target: { hmac }, found: { item, shard } }: Named,
  source: ClickSource,
): Promise<PageView | 'unknown'> {
  const body: UnsubscribeBody = { item, hmac, source }
  return viewOf<UnsubscribeReply>(await deps.ask(shard, { name: 'unsubscribe', cmdId: deps.newCmdId(), body }))
}

/** `unknown`: the outcome is unknown. Repeating it is harmless. */
function viewOf<Kinds extends UnsubscribeReply | UndoReply>(result: AskResult): PageView | 'unknown' {
  if (result.kind === 'answer') return { kind: (result.reply as Kinds).kind }
  return result.kind === 'unavailable' || result.kind === 'fault' ? { kind: 'unavailable' } : 'unknown'
}

function languageOf({ acceptLanguage }: EdgeRequest): ReturnType<typeof chooseLanguage> {
  return chooseLanguage(acceptLanguage)
}
