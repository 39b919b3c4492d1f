/**
 * sentences - the sentences that the code prints when a start or a command fails
 *
 * A sentence is shown as a reader sees it, with `…` for its variable parts, and only up to its first colon, semicolon
 * or full stop. The remedy follows after that.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { ROOT } from '../machine/root.ts'

/** Rooms and files whose errors end a start or a command, and the names of these errors there. */
const MADE: readonly (readonly [place: string, call: RegExp])[] = [
  ['procfile.mjs', /\bfail\(/g],
  ['src/service/built.mjs', /isIn \? null : (?=`)/g],
  ['src/service/pack', /new Error\(/g],
  ['src/main.ts', /new Error\(/g],
  ['src/http/listener.ts', /new Error\((?=`\$\{setting|'HTTP_PORT_)/g],
  ['src/outbound', /wanted: |new Error\((?='Cannot )/g],
  ['src/mail/site.ts', /return (?=['`])/g],
  ['src/store/open-store.ts', /stopFor\([\w.]+, [\w.]+, /g],
  ['cluster/worker/protocol.ts', /return (?=`)/g],
  ['src/cli', /new (?:CommandFailure|InvalidArgumentError|Error)\(/g],
  ['src/cli/cluster', /new (?:CommandFailure|InvalidArgumentError|Error)\(/g],
  ['src/cli/domain', /new (?:CommandFailure|InvalidArgumentError|Error)\(/g],
  ['src/cli/operator', /new (?:CommandFailure|InvalidArgumentError|Error)\(/g],
  ['src/cli/console', /new (?:CommandFailure|InvalidArgumentError|Error)\(/g],
  ['src/service', /new Error\(|console\.error\((?='T)|return (?='The )|=== undefined \? null : (?=`)/g],
  [
    'src/store',
    /new (?:Error|InstallationMismatch|WrongDirectory)\(|return \(\s*(?=['`])|return (?=['`](?:The store|\$\{path))/g,
  ],
  ['src/store/repair', /new Error\(/g],
  ['src/store/backup', /new Error\(/g],
  ['src/store/cluster', /never\(|notYet\(|new (?:OtherOrder|NoRoom|Error)\(/g],
  ['src/process/listening', /new Error\(/g],
  ['src/process', /new Error\(|new Mistake\(|found\.push\(|wanted: /g],
  ['src/content', /new ContentMismatch\(/g],
  ['cluster/embedded', /new Error\(|refuse\(|sentence:\s*/g],
  ['cluster/redis', /new (?:StoreRefused|Error)\(|super\((?='Redis )|(?:return|:) (?=`Redis does)/g],
  ['cluster/slots', /new (?:StoreRefused|Error)\(|faults\.push\(|return \[\s*(?=`)/g],
]
/** A shorter clause is not clear by itself. */
const CLAUSE_MIN = 20

/** Every sentence, once, in the order of the rooms. */
export function errorSentences(): string[] {
  const found = MADE.flatMap(([place, call]) =>
    sourcesIn(place).flatMap((path) => sentencesIn(readFileSync(join(ROOT, path), 'utf8'), call)),
  )
  return [...new Set(found)]
}

function sourcesIn(place: string): string[] {
  const isSource = (name: string): boolean => /\.(?:ts|mjs)$/.test(name)
  if (isSource(place)) return [place]
  const names = readdirSync(join(ROOT, place)).filter(isSource)
  return names.map((name) => posix.join(place, name))
}

/** The sentences of one source that follow a match of `call`. */
export function sentencesIn(source: string, call: RegExp): string[] {
  return [...source.matchAll(call)].flatMap(({ 0: match, index }) => {
    const whole = literalAt(source, index + match.length)
    // An expression without a literal passes on the message of another error.
    return /\p{L}/u.test(whole) ? [headOf(whole)] : []
  })
}

/** The text of the literals at a place, joined by `+`; empty if there is none. */
function literalAt(source: string, from: number): string {
  let at = skipBlank(source, from)
  let text = ''
  while (`'"\``.includes(source[at] ?? ' ')) {
    const [piece, end] = readLiteral(source, at)
    text += piece
    at = skipBlank(source, end)
    if (source[at] !== '+') break
    at = skipBlank(source, at + 1)
  }
  return text.replace(/…+/g, '…').trim()
}

function skipBlank(source: string, from: number): number {
  let at = from
  while (/\s/.test(source[at] ?? '')) at += 1
  return at
}

/** Returns the contents of a literal, and its end. */
function readLiteral(source: string, from: number): [text: string, end: number] {
  const quote = source[from]
  let text = ''
  for (let at = from + 1; at < source.length; at += 1) {
    const char = source[at] as string
    if (char === quote) return [text, at + 1]
    if (char === '\\') at += 1
    if (quote === '`' && char === '$' && source[at + 1] === '{') {
      at = endOfHole(source, at + 2)
      text += '…'
    } else text += char === '\\' ? (source[at] as string).replace('n', ' ') : char
  }
  return [text, source.length]
}

/** The place of the brace that closes an open one. */
function endOfHole(source: string, from: number): number {
  let depth = 1
  for (let at = from; at < source.length; at += 1) {
    if (source[at] === '{') depth += 1
    if (source[at] === '}') depth -= 1
    if (depth === 0) return at
  }
  return source.length
}

function headOf(sentence: string): string {
  const end = [...sentence.matchAll(/[:;.](?: |$)/g)].find(({ index }) => index >= CLAUSE_MIN)?.index
  return (end === undefined ? sentence : sentence.slice(0, end)).trim().replace(/\.$/, '')
}
