/** named-file - a file that a setting names: its text, or a mistake that ends the start as a wrong setting does */

import { readFileSync } from 'node:fs'

/** A file that a setting names cannot be used. */
export class WrongFile extends Error {
  /** Takes the setting; a description of the required file that follows its name; the path. */
  constructor(setting: string, { wanted, path }: { wanted: string; path: string }) {
    super(`${setting}: ${wanted} (is ${JSON.stringify(path)})`)
  }
}

/** The text of the file that a setting names. Throws WrongFile when it cannot be read. */
export function readNamedFile(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new WrongFile(setting, { wanted: 'a readable file', path })
  }
}
