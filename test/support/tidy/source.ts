/** source - the files of the project as the rules of the house see them: paths, texts, imports. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
import { ROOT } from '../machine/root.ts'

const TREES = ['schemas', 'cluster', 'src', 'bench', 'test']

export interface Source {
  readonly path: string
  readonly text: string
}

export interface Import {
  readonly from: string
  readonly isType: boolean
  /** Names that are imported as values. */
  readonly values: readonly string[]
}

/** Every file of code in the project. */
export function sources(): Source[] {
  return TREES.flatMap((tree) => {
    const names = readdirSync(join(ROOT, tree), { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(tsx?|mjs)$/.test(name),
    )
    return names.map((name) => {
      const path = join(ROOT, tree, name)
      return { path: relative(ROOT, path).split(sep).join('/'), text: readFileSync(path, 'utf8') }
    })
  })
}

/** The text without comments, and with empty strings and regular expressions. Good enough for words, not a parser. */
export function codeOf(text: string): string {
  const pieces =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[=(,:!&|?{};[\n]\s*|return )\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g
  return text.replace(pieces, (piece) => (piece.startsWith('/') ? ' ' : "''"))
}

/** The imports of a file, and its exports from others. */
export function importsOf(text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/[^\n]*/gm, '')
  const clauses = /^(?:import|export)\s+(type\s)?([^;'"]*?\bfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm
  return [...code.matchAll(clauses)].map(([, type, names = '', from, dynamic]) => {
    const inner = /\{([^}]*)\}\s*from/.exec(names)?.[1]
    const parts = (inner ?? '').split(',').map((name) => name.trim())
    const values = type ? [] : parts.filter((name) => name !== '' && !name.startsWith('type '))
    const isEachType = inner !== undefined && /^\s*\{/.test(names) && values.length === 0
    return { from: from ?? dynamic ?? '', isType: Boolean(type) || isEachType, values }
  })
}

/** The path of the file that one of our imports names; null for a package. */
export function targetOf(path: string, { from }: Pick<Import, 'from'>): string | null {
  return from.startsWith('.') ? posix.normalize(posix.join(posix.dirname(path), from)) : null
}

export function isIn(path: string, room: string): boolean {
  return path.startsWith(`${room}/`)
}
