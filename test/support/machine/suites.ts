/** suites - where the test vectors lie that this project did not write */

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { ROOT } from './root.ts'

/** Absolute path of a file or folder of the vectors; null where it is not there, and the test is to be skipped. */
export function findSuite(name: string): string | null {
  const path = join(resolve(ROOT, process.env.SUITES_DIR ?? '../shared/suites'), name)
  return existsSync(path) ? path : null
}
