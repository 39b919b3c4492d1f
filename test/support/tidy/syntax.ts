/**
 * syntax - the syntax trees of the product's files, and what two tests look for in them: regular expressions, and
 * long-lived maps
 *
 * TypeScript 7 has no interface for programs: esbuild strips the types, acorn parses the rest.
 */
import type { Node } from 'acorn'
import { parse } from 'acorn'
import { full, fullAncestor } from 'acorn-walk'
import { transformSync } from 'esbuild'
import { isIn, type Source, sources } from './source.ts'

const TREES = ['schemas', 'cluster', 'src']

export interface Syntax {
  readonly path: string
  /** Without types. */
  readonly code: string
  readonly tree: Node
}

/** Any node: acorn's types name the fields of each kind, and a search wants the same few of all. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type AnyNode = any

/** The trees of schemas/, cluster/ and src/. */
export function productSyntax(): Syntax[] {
  return sources()
    .filter(({ path }) => TREES.some((tree) => isIn(path, tree)))
    .map(syntaxOf)
}

/** The tree of one file. */
export function syntaxOf({ path, text }: Source): Syntax {
  const loader = path.endsWith('x') ? 'tsx' : 'ts'
  const { code } = transformSync(text, { loader, target: 'esnext', jsx: 'automatic' })
  return { path, code, tree: parse(code, { ecmaVersion: 'latest', sourceType: 'module' }) }
}

export interface Pattern {
  readonly path: string
  readonly source: string
  readonly flags: string
}

/** The literals of a file, and patterns of its JSON schemas, which Ajv compiles with the flag `u`. */
export function patternsOf({ path, tree }: Syntax): Pattern[] {
  const found: Pattern[] = []
  full(tree, (node: AnyNode) => {
    if (node.type === 'Literal' && node.regex) found.push({ path, source: node.regex.pattern, flags: node.regex.flags })
    if (isPattern(path, node) && typeof node.value.value === 'string')
      found.push({ path, source: node.value.value, flags: 'u' })
  })
  return found
}

/** Expressions of a file that make a pattern at run time, as the file writes them. */
export function madePatternsOf({ path, code, tree }: Syntax): { path: string; expression: string }[] {
  const found: { path: string; expression: string }[] = []
  full(tree, (node: AnyNode) => {
    const isMade = ['NewExpression', 'CallExpression'].includes(node.type) && node.callee.name === 'RegExp'
    const isTemplate = isPattern(path, node) && node.value.type === 'TemplateLiteral'
    if (isMade) found.push({ path, expression: code.slice(node.start, node.end) })
    if (isTemplate) found.push({ path, expression: code.slice(node.value.start, node.value.end) })
  })
  return found
}

function isPattern(path: string, node: AnyNode): boolean {
  return isIn(path, 'schemas') && node.type === 'Property' && node.key.name === 'pattern'
}

const COLLECTIONS: ReadonlySet<string> = new Set(['Map', 'Set', 'BoundedCache'])
const FUNCTIONS: ReadonlySet<string> = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/**
 * Names of maps and sets in a file that outlive the call that makes them: fields of objects and classes, constants of
 * the module, and variables that a function of the same scope uses later. Maps without additions are left out. In: the
 * code of all files, in which fields are found by name.
 */
export function livingMapsOf({ path, code, tree }: Syntax, everywhere: string): { path: string; name: string }[] {
  const found = new Map<string, { path: string; name: string }>()
  fullAncestor(tree, (node: AnyNode, _state, ancestors) => {
    if (node.type !== 'NewExpression' || !COLLECTIONS.has(node.callee.name)) return
    const above = [...(ancestors as AnyNode[])].reverse().slice(1)
    const holder = above.find(({ type }) => type !== 'ConditionalExpression' && type !== 'LogicalExpression')
    const name = nameOf(holder)
    if (name === null) return
    // Or a function is given it that may add to it.
    const grows = new RegExp(
      `\\b${name}\\)?[?!]*\\.(?:set|add)\\(|\\b(?:add|count|keep|note|put|set)\\w*\\([^()]*\\b${name}\\b`,
    )
    const isField = holder.type === 'PropertyDefinition' || holder.type === 'Property' || isThis(holder)
    const scope = above.find(({ type }) => FUNCTIONS.has(type))
    const isCache = node.callee.name === 'BoundedCache'
    const lives = isField || scope === undefined || isUsedLater(scope, name, code)
    if (lives && (isCache || grows.test(isField ? everywhere : code))) found.set(name, { path, name })
  })
  return [...found.values()]
}

function nameOf(holder: AnyNode): string | null {
  if (holder?.type === 'VariableDeclarator') return holder.id.name ?? null
  if (holder?.type === 'PropertyDefinition' || holder?.type === 'Property') return holder.key.name ?? null
  return isThis(holder) ? holder.left.property.name : null
}

function isThis(holder: AnyNode): boolean {
  return holder?.type === 'AssignmentExpression' && holder.left.object?.type === 'ThisExpression'
}

/** Whether a function uses one of its variables in another function that it declares or returns, not in a callback. */
function isUsedLater(scope: AnyNode, name: string, code: string): boolean {
  let isUsed = false
  fullAncestor(scope.body, (node: AnyNode, _state, ancestors) => {
    if (!FUNCTIONS.has(node.type)) return
    const parent = (ancestors as AnyNode[]).at(-2)
    const isCallback = parent?.type === 'CallExpression' || parent?.type === 'NewExpression'
    if (!isCallback && new RegExp(`\\b${name}\\b`).test(code.slice(node.start, node.end))) isUsed = true
  })
  return isUsed
}
