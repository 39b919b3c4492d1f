/**
 * reveal - an operator reads the text and the addresses of a message: it is in the audit log before anything is shown.
 *
 * Spec operator.message, operator.audit
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
