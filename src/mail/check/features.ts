/**
 * features - which features of HTML and CSS a tag and a style sheet use, of those that mail clients drop
 *
 * Spec message.checks
 */

import type { Tag } from '../html-tags.ts'
import { CLIENT_SUPPORT } from './client-support.ts'

export interface Feature {
  readonly title: string
  readonly slug: string
  /** Percent of clients with full, partial and no support. */
  readonly clients: { readonly full: number; readonly partial: number; readonly none: number }
}

/** A feature and its place in the style sheet. */
export interface PlacedFeature extends Feature {
  readonly at: number
}

const TABLE = makeTable()
/** Characters of a function's name. */
const NAME_CHARS_MAX = 30
/** A number with its unit. */
const UNIT = /\d([a-z]{1,4})\b/gi
const PSEUDO = /:([a-z-]{1,30})/gi

/** The features of a start tag, without its style. */
export function featuresOfTag({ name, attributes }: Tag): Feature[] {
  const found = [TABLE.get(`element ${name}`)]
  for (const [attribute, value] of attributes) {
    found.push(TABLE.get(`attribute ${attribute}`), TABLE.get(`pair ${name} ${attribute} ${value.toLowerCase()}`))
    if (name === 'a' && attribute === 'href' && value.startsWith('#')) found.push(TABLE.get('anchor #'))
    if (attribute === 'src' && name === 'img') found.push(TABLE.get(`image ${formatOfImage(value)}`))
  }
  return found.filter((one) => one !== undefined)
}

/** The features of a style sheet. The declarations of an attribute are in braces. */
export function featuresOfStyle(sheet: string): PlacedFeature[] {
  const css = withoutComments(sheet)
  const found: PlacedFeature[] = []
  const add = (key: string, at: number) => {
    const feature = TABLE.get(key)
    if (feature !== undefined) found.push({ ...feature, at })
  }
  let start = 0
  for (let at = 0; at <= css.length; at += 1) {
    const mark = css[at] ?? '}'
    if (mark !== '{' && mark !== '}' && mark !== ';') continue
    const piece = css.slice(start, at)
    const from = start + (piece.length - piece.trimStart().length)
    if (piece.trimStart().startsWith('@')) addRule(piece.trim(), from, add)
    else if (mark === '{')
      for (const [, pseudo = ''] of piece.matchAll(PSEUDO)) add(`pseudo ${pseudo.toLowerCase()}`, from)
    else addDeclaration(piece.trim(), from, add)
    start = at + 1
  }
  return found
}

type Add = (key: string, at: number) => void

function addRule(rule: string, at: number, add: Add): void {
  const name = /^@(?:-webkit-)?([a-z-]{1,30})/i.exec(rule)?.[1]?.toLowerCase() ?? ''
  add(`at ${name}`, at)
  if (name !== 'media') return
  for (const [, feature = ''] of rule.matchAll(/\((?:-webkit-|any-)?([a-z-]{1,40})/gi)) add(`at media ${feature}`, at)
}

function addDeclaration(declaration: string, at: number, add: Add): void {
  const colon = declaration.indexOf(':')
  if (colon < 0) return
  const property = declaration.slice(0, colon).trim().toLowerCase()
  const value = declaration
    .slice(colon + 1)
    .trim()
    .toLowerCase()
  add(`property ${property}`, at)
  add(`value ${property}:${value}`, at)
  for (let open = value.indexOf('('); open >= 0; open = value.indexOf('(', open + 1)) {
    const before = value.slice(Math.max(0, open - NAME_CHARS_MAX), open)
    add(`function ${before.split(/[^a-z-]/).at(-1)}`, at)
  }
  for (const [, unit = ''] of value.matchAll(UNIT)) add(`unit ${unit}`, at)
}

/** Comments as blanks, so that places stay. */
function withoutComments(css: string): string {
  let text = ''
  let at = 0
  for (;;) {
    const start = css.indexOf('/*', at)
    if (start < 0) return text + css.slice(at)
    const end = css.indexOf('*/', start + 2)
    const next = end < 0 ? css.length : end + 2
    text += css.slice(at, start) + ' '.repeat(next - start)
    at = next
  }
}

/** The format that an image's address names: its ending, or the type of its data. */
function formatOfImage(src: string): string {
  const data = /^data:image\/([a-z0-9]{1,20})/i.exec(src)
  if (data !== null) return data[1]?.toLowerCase() ?? ''
  const path = src.split(/[?#]/, 1)[0] ?? ''
  return path.slice(path.lastIndexOf('.') + 1).toLowerCase()
}

function makeTable(): ReadonlyMap<string, Feature> {
  const table = new Map<string, Feature>()
  for (const [kind, names, title, full, partial, none, slug] of CLIENT_SUPPORT) {
    const feature = { title, slug, clients: { full, partial, none } }
    const isOne = kind === 'pair' || names.startsWith('media ')
    for (const name of isOne ? [names] : names.split(' ')) table.set(`${kind} ${name}`, feature)
  }
  return table
}
