/** version - the version of this installation, from its package.json */

import { readFileSync } from 'node:fs'

/** Reads the version. @throws Error if the file cannot be read */
export function readVersion(): string {
  // Seen from the compiled file.
  const manifest = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}
