/**
 * mx-listener - whether any process of the cluster takes bounces and complaints
 *
 * Spec operator.health
 */

import type { Finding } from '../../schemas/operator/health.ts'
import { warning, well } from './finding.ts'

/** What is wrong where none does, and the step that mends it. */
export const NO_MX_LISTENER =
  'No process takes bounces and complaints: those that come after the delivery are never known'
export const NO_MX_LISTENER_FIX =
  'Start one with ROLES=mx (npm run cluster -- mx=1), or give MX_PORT a port where the whole service is one process'

/** In: reads what the living processes run. */
export async function examineMxListener(livingRoles: () => Promise<ReadonlySet<string>>): Promise<Finding> {
  const roles = await livingRoles()
  return roles.has('mx')
    ? well('mx-listener', 'A process takes bounces and complaints')
    : warning('mx-listener', NO_MX_LISTENER, NO_MX_LISTENER_FIX)
}
