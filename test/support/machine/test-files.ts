/** test-files - which files the runner runs: each that imports the runner's library. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './root.ts'

const FOLDER = join(ROOT, 'test')
/** What tests share, and programs that are no tests. */
const OTHERS = /^(?:all\.ts$|support\/|chaos\/|trial\/)/
const IMPORTS_TAP = /^import (?!type\b).*\bfrom 'tap'/m

/** The test files of this tree, relative to `test/` and without their ending: `routes/email`. */
export function testFiles(): string[] {
  return readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && isTestFile(path, readFileSync(join(FOLDER, path), 'utf8')))
    .map((path) => path.slice(0, -'.ts'.length))
    .sort()
}

/** In: the file's path below `test/`, and its text. */
export function isTestFile(path: string, text: string): boolean {
  return !OTHERS.test(path) && IMPORTS_TAP.test(text)
}
