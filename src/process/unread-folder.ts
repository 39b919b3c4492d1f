/** unread-folder - the folder of returned mail that could not be read, and its size */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** The folder in DATA_DIR. */
export const UNREAD_REPORTS = 'unread-reports'

/** How many mails are kept; 0 if there is no folder. */
export async function countUnreadReports(dataDir: string): Promise<number> {
  const names = await readdir(join(dataDir, UNREAD_REPORTS)).catch(() => [])
  return names.filter((name) => name.endsWith('.eml')).length
}
