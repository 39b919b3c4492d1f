/**
 * mx-listener - whether any process of the cluster takes bounces and complaints
 *
 * Spec operator.health
 */

import { join } from 'node:path'
import type { Finding } from '../../schemas/operator/health.ts'
import { countUnreadReports, UNREAD_REPORTS } from '../process/unread-folder.ts'
import { warning, well } from './finding.ts'

/** The fault if there is no listener, and the step that fixes it. */
export const NO_MX_LISTENER =
  'No process takes bounces and complaints: those that come after the delivery are never known'
export const NO_MX_LISTENER_FIX =
  'Start one with ROLES=mx (npm run cluster -- mx=1), or give MX_PORT a port where the whole service is one process'

/** Takes a function that reads the roles of the living processes, and the directory of unread reports. */
export async function examineMxListener(
  livingRoles: () => Promise<ReadonlySet<string>>,
  dataDir: string,
): Promise<Finding> {
  const [roles, unread] = await Promise.all([livingRoles(), countUnreadReports(dataDir)])
  if (!roles.has('mx')) return warning('mx-listener', NO_MX_LISTENER, NO_MX_LISTENER_FIX)
  if (unread === 0) return well('mx-listener', 'A process takes bounces and complaints')
  return warning(
    'mx-listener',
    `Bounces or complaints could not be read within a second, and count for nothing: ${unread} in the last 7 days`,
    `Read the files in ${join(dataDir, UNREAD_REPORTS)}, and delete them. Report a genuine bounce as a bug`,
  )
}
