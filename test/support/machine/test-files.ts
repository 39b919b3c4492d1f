/** test-files - the files that the runner runs, and which of them share a process. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './root.ts'

const FOLDER = join(ROOT, 'test')
/** The folder of the second tier. */
export const DEEP = 'deep/'
/** Shared parts of tests, and programs that are not tests. */
const OTHERS = /^(?:all\.ts$|support\/|chaos\/|trial\/)/
const IMPORTS_TAP = /^import (?!type\b).*\bfrom 'tap'/m
/** Folders whose files end processes, or fill disks and memory. Each file runs alone in its process. */
const ALONE = /^(?:attacks|browser|content|crash|fuzz|mistakes|service|simulation|store)\/|^[^/]+$/
const SHARED_MAX = 12

/** The test files of this tree, relative to `test/` and without their extension: `routes/email`. */
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

/** A file's path below its tier. */
export function roomOf(file: string): string {
  return file.startsWith(DEEP) ? file.slice(DEEP.length) : file
}

/** The files of each process: first those that run alone, which take longest, then those that share one by folder. */
export function runsOf(files: readonly string[]): string[][] {
  const alone = files.filter((file) => ALONE.test(roomOf(file)))
  const folders = new Map<string, string[]>()
  for (const file of files.filter((one) => !alone.includes(one))) {
    const folder = roomOf(file).split('/', 1)[0] as string
    folders.set(folder, [...(folders.get(folder) ?? []), file])
  }
  const shared = [...folders.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / SHARED_MAX) }, (_, at) =>
      all.slice(at * SHARED_MAX, (at + 1) * SHARED_MAX),
    ),
  )
  return [...alone.map((file) => [file]), ...shared]
}
