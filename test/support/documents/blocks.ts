/** blocks - the blocks of code in the documents that a user reads: README.md and docs/. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../machine/root.ts'

export interface Block {
  readonly document: string
  readonly language: string
  readonly code: string
}

export const DOCUMENTS: readonly string[] = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !/^\.vitepress/.test(name))
    .map((name) => `docs/${name}`)
    .sort(),
]

/** The blocks of a document, in its order. */
export function blocksOf(document: string): Block[] {
  const text = readFileSync(join(ROOT, document), 'utf8')
  return [...text.matchAll(/^```(\w*)(?: \[[^\]\n]+\])?\n(.*?)^```$/gms)].map(([, language = '', code = '']) => ({
    document,
    language,
    code,
  }))
}

/** Lines that start a service: `npm start` or `npm run cluster`, with their variables and without comments. */
export function startsOf(code: string): string[] {
  const lines = code.split('\n').map((line) => line.replace(/\s+#.*$/, ''))
  return lines.filter((line) => /\bnpm (?:start|run cluster)\b/.test(line))
}
