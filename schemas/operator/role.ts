/**
 * role - the role of an operator's key, and the least role that each operator route takes
 *
 * `readOnly` reads, `support` also retries mail, lifts suppressions, reveals messages and searches recipients, `admin`
 * does everything. A key without a role was created by an earlier version, and is an admin's.
 */

export const OPERATOR_ROLES = ['readOnly', 'support', 'admin'] as const

export type OperatorRole = (typeof OPERATOR_ROLES)[number]

/** Routes whose role does not follow from their method. */
const ROLES: Readonly<Record<string, OperatorRole>> = {
  openOperatorSession: 'readOnly',
  endOperatorSession: 'readOnly',
  createDeskLink: 'readOnly',
  operatorSearchSuppressions: 'readOnly',
  retryQueue: 'support',
  operatorLiftSuppression: 'support',
  revealMessage: 'support',
  searchRecipients: 'support',
}

/** The least role for a route of the operator listener: reads are open to each role, other writes to admins. */
export function roleOfRoute({ name, method }: { readonly name: string; readonly method: string }): OperatorRole {
  return ROLES[name] ?? (method === 'GET' ? 'readOnly' : 'admin')
}

/** Whether a role includes another one. */
export function includesRole(role: OperatorRole, needed: OperatorRole): boolean {
  return OPERATOR_ROLES.indexOf(role) >= OPERATOR_ROLES.indexOf(needed)
}
