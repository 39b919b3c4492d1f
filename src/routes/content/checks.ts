/**
 * checks - POST /v1/messages/{id}/checks
 *
 * Spec message.checks
 */

import type { Checks } from '../../../schemas/checks.ts'
import type { Message } from '../../../schemas/message.ts'
import type { LinkChecker, LinkResult } from '../../checks/check-links.ts'
import type { HandlerOf } from '../../http/request.ts'
import { RATE_REFUSAL, refusalReply } from '../../http/respond.ts'
import { checkMail } from '../../mail/check/check-mail.ts'
import type { Head } from '../../state/message/head.ts'
import { type MessageDeps, readStoredMessage, readWhole } from '../../views/message/message.ts'

export interface CheckDeps extends MessageDeps {
  readonly linkChecker: LinkChecker
}

/** Characters of a List-Unsubscribe header that are read. */
const HEADER_CHARS_MAX = 4_096

/** POST /v1/messages/{id}/checks */
export function makeCheckMessage(deps: CheckDeps): HandlerOf<'checkMessage'> {
  return async ({ key, params, body }) => {
    if (body.links && key.mode !== 'test') {
      const issue = { path: 'links', message: 'Links are requested on test servers only' }
      return refusalReply('invalid_request', { issues: [issue] })
    }
    const stored = await readStoredMessage(deps, key, params.id ?? '')
    if (typeof stored === 'string') return refusalReply(stored)
    const message = await readWhole(deps, key, stored)
    if (typeof message === 'string') return refusalReply(message)
    if (!message.contentAvailable) return refusalReply('content_expired')
    const { findings, links } = checkMail({ ...message, lacksUnsubscribe: lacksUnsubscribe(stored.head) })
    const results = body.links
      ? await deps.linkChecker.check({
          accountId: key.accountId,
          hrefs: links.map(({ href }) => href),
          unsubscribes: unsubscribesOf(message),
        })
      : links.map(({ href }): LinkResult => ({ href, result: 'not_checked', status: null, reason: 'not_requested' }))
    if (results === null) return RATE_REFUSAL
    const json: Checks = {
      findings: findings.map((one) => ({ ...one, clients: one.clients && { ...one.clients } })),
      links: links.map((link, at) => ({ ...link, ...(results[at] as LinkResult) })),
    }
    return { status: 200, json }
  }
}

/** The service adds the field to all messages of broadcast streams but those that bring their own. */
function lacksUnsubscribe({ ownsList, headers }: Head): boolean {
  return ownsList === true && unsubscribeField(headers) === null
}

/** The links of the message's own List-Unsubscribe. RFC 2369 */
function unsubscribesOf({ headers }: Pick<Message, 'headers'>): ReadonlySet<string> {
  const value = (unsubscribeField(headers) ?? '').slice(0, HEADER_CHARS_MAX)
  return new Set(
    value.split('<').flatMap((part) => (part.includes('>') ? part.slice(0, part.indexOf('>')).trim() : [])),
  )
}

function unsubscribeField(headers: Readonly<Record<string, string>>): string | null {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'list-unsubscribe') ?? []
  return value ?? null
}
