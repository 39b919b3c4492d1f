/** suites - the location of the test vectors that this project did not write */

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { ROOT } from './root.ts'

/** Absolute path of a file or folder of the vectors. If it is missing the result is null, and the test is skipped. */
export function findSuite(name: string): string | null {
  const path = join(resolve(ROOT, process.env.SUITES_DIR ?? '../shared/suites'), name)
  return existsSync(path) ? path : null
}
