/** unread-folder - where returned mail is kept that could not be read, and how much is there */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** The folder in DATA_DIR. */
export const UNREAD_REPORTS = 'unread-reports'

/** How many mails are kept; 0 if there is no folder. */
export async function countUnreadReports(dataDir: string): Promise<number> {
  const names = await readdir(join(dataDir, UNREAD_REPORTS)).catch(() => [])
  return names.filter((name) => name.endsWith('.eml')).length
}
