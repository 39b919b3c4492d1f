/** test-files - which files the runner runs: the globs of `.taprc`. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './root.ts'

/** The globs of `.taprc` that name the test files, as one expression over paths of sources. */
export function includedTests(taprc: string): RegExp {
  const globs = [...taprc.matchAll(/^ {2}- build\/(\S+)\.js$/gm)].map(([, glob = '']) => glob)
  const words: Record<string, string> = { '*': '[^/]*', '{': '(?:', '}': ')', ',': '|' }
  return new RegExp(`^(?:${globs.map((glob) => glob.replace(/[*{},]/g, (sign) => words[sign] ?? '')).join('|')})\\.ts$`)
}

/** The test files of this tree, relative to `test/` and without their ending: `routes/email`. */
export function testFiles(): string[] {
  const included = includedTests(readFileSync(join(ROOT, '.taprc'), 'utf8'))
  return readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => included.test(`test/${path}`))
    .map((path) => path.slice(0, -'.ts'.length))
    .sort()
}
