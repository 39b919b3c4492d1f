/**
 * export - the log entry of an export: written before its first row leaves, and completed with its rows at its end
 *
 * An entry without rows belongs to an export that is running, or whose process has ended.
 *
 * Spec export.note
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { type ActRecord, actChangedOps, actOps, type MemberAct } from '../../state/dashboard/act.ts'

export interface ExportBegun {
  readonly kind: 'begun'
  readonly auditId: string
}

export const beginExport: CommandType<MemberAct, ExportBegun> = {
  name: 'begin-export',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide(act, _states, _facts, context) {
    const auditId = context.newId()
    return { kind: 'done', reply: { kind: 'begun', auditId }, ops: actOps(context, act, auditId) }
  },
}

/** The act as it was begun, with the id of its entry and all its targets at the end. */
export interface EndExportBody extends Pick<ActRecord, 'auditId'> {
  readonly begun: MemberAct
  readonly targets: MemberAct['targets']
}

export const endExport: CommandType<EndExportBody, { readonly kind: 'ended' }> = {
  name: 'end-export',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ begun, auditId, targets }, _states, _facts, context) {
    return { kind: 'done', reply: { kind: 'ended' }, ops: actChangedOps(context, begun, { auditId, targets }) }
  },
}
