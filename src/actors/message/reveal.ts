/**
 * reveal - an operator reads the text and the addresses of a message, or looks for the messages of a recipient: it is
 * in the audit log before anything is shown.
 *
 * Spec operator.message, operator.recipients, operator.audit
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'

export interface RevealBody {
  readonly messageId: string
  readonly serverId: string
  readonly accountId: string
  readonly by: OperatorAct
}

export interface RevealReply {
  readonly kind: 'logged'
}

export const reveal: CommandType<RevealBody, RevealReply> = {
  name: 'reveal-message',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ messageId, serverId, accountId, by }, _states, _facts, context) {
    const ops = auditOps(context, by, { targets: { messageId, serverId, accountId }, before: null, after: null })
    return { kind: 'done', reply: { kind: 'logged' }, ops }
  },
}

export interface SearchRecipientsBody {
  /** The recipient's domain. The log names no address. */
  readonly domain: string
  readonly by: OperatorAct
}

export const searchRecipients: CommandType<SearchRecipientsBody, RevealReply> = {
  name: 'search-recipients',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ domain, by }, _states, _facts, context) {
    const ops = auditOps(context, by, { targets: { domain }, before: null, after: null })
    return { kind: 'done', reply: { kind: 'logged' }, ops }
  },
}
