/** root - the folder of the project's package.json, from any folder that this was compiled into */

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

function findRoot(start: string): string {
  let folder = start
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) throw new Error('No package.json above the tests')
    folder = parent
  }
  return folder
}

/** Absolute path of the folder that holds package.json. */
export const ROOT: string = findRoot(dirname(fileURLToPath(import.meta.url)))
