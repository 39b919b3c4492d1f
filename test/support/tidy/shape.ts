/** shape - how long files and functions are, how full rooms are, how files open, and that a name means one thing. */
import { posix } from 'node:path'
import { isTestFile } from '../machine/test-files.ts'
import { importsOf, type Source, targetOf } from './source.ts'

export const LINES_MAX = 400
export const FUNCTION_LINES_MAX = 70
export const COLUMNS_MAX = 120
export const ROOM_FILES_MAX = 25

// Built from halves, or this very file would be a finding.
const DEBT = new RegExp(`\\b(?:${['TO', 'FIX'].map((half, at) => half + ['DO', 'ME'][at]).join('|')})\\b`, 'g')
/** The name at the beginning of a file's header comment. */
const HEADER_NAME = /^(?:#![^\n]*\n)?\/\*\*\s+(?:\*\s+)?([A-Za-z0-9./-]+) - \S/
/** Folders of test/ without a matching room. */
const NO_MIRROR =
  /^test\/(?:deep$|attacks|crash|chaos|fuzz|simulation|delivery|mistakes|support|fixtures|browser|trial)(?:\/|$)/
/** Programs of test/, which processes are started with. */
const PROGRAM = /^test\/(?:all|(?:chaos|trial)\/[a-z-]+|support\/.*)\.(?:ts|mjs)$/
/** Keywords that open a block and are no function. */
const BLOCK = /^(?:\} )?(?:if|for|while|switch|else|catch|do|try)\b/

/** Shape: a first sentence, a length, no debt, no meaningless name. */
export function misshapen({ path, text }: Source): string[] {
  const found: string[] = []
  const lines = text.trimEnd().split('\n').length
  if (lines > LINES_MAX) found.push(`${path} has ${lines} lines, ${LINES_MAX} at most: split it`)
  // A test's sentence may read as it likes; the other files begin with their name.
  const opening = path.startsWith('test/') ? /^\/\*\*\s/ : /^(?:#![^\n]*\n)?\/\*\*\s+(?:\*\s+)?[a-z0-9./-]+ - \S/
  if (!opening.test(text)) found.push(`${path} does not open with "name - summary"`)
  const own = posix.basename(path).replace(/(?:\.d)?\.(?:tsx?|mjs)$/, '')
  const name = HEADER_NAME.exec(text)?.[1] ?? own
  if (name !== own) found.push(`${path} opens with the name "${name}" in place of "${own}"`)
  for (const word of text.match(DEBT) ?? []) found.push(`${path} contains ${word}: do it`)
  if (/\/(?:index|utils?|helpers?|common|misc|types)\.tsx?$/.test(path))
    found.push(`${path}: name the file after what it does`)
  if (/^export default\b/m.test(text)) found.push(`${path} has a default export: name it`)
  return found
}

/** Lines of comments that are too wide, as `path line`; the formatter sees to the code. */
export function wideComments({ path, text }: Source): string[] {
  const isComment = /^\s*(?:\/\*|\*|\/\/)/
  const lines = text.split('\n').map((line, at) => ({ line, at }))
  const wide = lines.filter(({ line }) => [...line].length > COLUMNS_MAX && isComment.test(line))
  return wide.map(({ at }) => `${path} ${at + 1}`)
}

/** Width of prose in documents, so that a change of a sentence is a small diff. */
export const PROSE_COLUMNS_MAX = 100

/** Lines of prose that are too wide, as `path line`. Headings, tables, code and an unbreakable span may be wider. */
export function wideProse({ path, text }: Source): string[] {
  let isCode = false
  return text.split('\n').flatMap((line, at) => {
    if (/^ *```/.test(line)) isCode = !isCode
    const whole = line.replace(/`[^`]*`|\[[^\]]*\]\([^)]*\)/g, (span) => span.replaceAll(' ', '_')).trimStart()
    const isWide = line.length > PROSE_COLUMNS_MAX && whole.includes(' ')
    return isWide && !isCode && !/^[|#<]/.test(whole) ? [`${path} ${at + 1}`] : []
  })
}

/** Functions that are too long, as `path name`. The formatter closes each at the indentation that it was opened at. */
export function longFunctions({ path, text }: Source): string[] {
  const lines = text.split('\n')
  return lines.flatMap((line, at) => {
    const indent = /^ */.exec(line)?.[0] ?? ''
    const opens = /(?:=>|\)|\): [^=]*) \{$/.test(line)
    if (!opens || BLOCK.test(line.trimStart())) return []
    // Parameters on separate lines: the function began at the last line with the same indentation.
    let start = at
    while (start > 0 && /^[)}\]]/.test((lines[start] ?? '').trimStart()))
      start = lines.findLastIndex(
        (one, n) => n < start && one.startsWith(indent) && /^\S/.test(one.slice(indent.length)),
      )
    const end = lines.findIndex((one, n) => n > at && one.startsWith(`${indent}}`))
    const first = (lines[start] ?? '').trim()
    if (end - start + 1 <= FUNCTION_LINES_MAX || BLOCK.test(first)) return []
    const name = /(?:function\*?|const) (\w+)|^(?:\w+ )*(\w+)[(<]/.exec(first)
    return [`${path} ${name?.[1] ?? name?.[2] ?? first}`]
  })
}

/** Rooms with too many files. */
export function fullRooms(all: readonly Source[]): string[] {
  const counts = new Map<string, number>()
  for (const { path } of all) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1)
  return [...counts].filter(([, count]) => count > ROOM_FILES_MAX).map(([room, count]) => `${room} has ${count} files`)
}

/** Programs of their own, in browsers and in the client, which may name things as the service does. */
const PROGRAMS: readonly string[] = ['src/dashboard/page/', 'src/client/']

/**
 * Names that more than one file of the product exports. The command line names its orders as those who obey them do.
 */
export function namedTwice(all: readonly Source[]): string[] {
  const places = new Map<string, string[]>()
  for (const { path, text } of all) {
    if (/^(?:test|bench|src\/cli)\//.test(path)) continue
    const program = PROGRAMS.find((one) => path.startsWith(one)) ?? ''
    const names = /^export (?:async )?(?:function\*?|const|let|class|interface|type) ([\w$]+)/gm
    for (const [, word = ''] of text.matchAll(names)) {
      const name = program + word
      places.set(name, [...(places.get(name) ?? []), path])
    }
  }
  return [...places].filter(([, paths]) => paths.length > 1).map(([name]) => name)
}

/** Folders of test/ without a matching room of the house. In: all files, including tests. */
export function unmirrored(all: readonly Source[]): string[] {
  const folders = new Set(all.map(({ path }) => posix.dirname(path)))
  const rooms = new Set([...folders].flatMap((folder) => [folder, posix.dirname(folder)]))
  return [...folders].filter((folder) => {
    const room = folder.replace(/^test\/(?:deep\/)?/, '')
    if (!folder.startsWith('test/') || NO_MIRROR.test(`test/${room}`)) return false
    return !rooms.has(`src/${room}`) && !rooms.has(room)
  })
}

/** Files of test/ that hold no tests and that no other file imports: they never run. */
export function unreached(all: readonly Source[]): string[] {
  const imported = new Set(all.flatMap(({ path, text }) => importsOf(text).map((one) => targetOf(path, one))))
  return all
    .filter(({ path, text }) => path.startsWith('test/') && !isTestFile(path.slice('test/'.length), text))
    .map(({ path }) => path)
    .filter((path) => !imported.has(path) && !PROGRAM.test(path))
}
