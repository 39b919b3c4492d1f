/** judge-pattern - the verdict of recheck on a regular expression, and the texts with which it is slowest */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { check } from 'recheck'
import { ROOT } from '../machine/root.ts'

/** A verdict a line. */
const KEPT = join(ROOT, 'test/fixtures/patterns.jsonl')
const JUDGE_MS_MAX = 10_000

export interface Attack {
  readonly pumps: readonly { readonly prefix: string; readonly pump: string }[]
  readonly suffix: string
}

export interface Judged {
  readonly source: string
  readonly flags: string
  /** `safe`, `unknown`, or how its time grows. */
  readonly verdict: string
  readonly attack?: Attack
}

/** The verdicts that are kept. */
export function readVerdicts(): Judged[] {
  const lines = readFileSync(KEPT, 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Judged)
}

/** Stores these in place of the old ones. */
export function writeVerdicts(verdicts: readonly Judged[]): void {
  writeFileSync(KEPT, verdicts.map((one) => `${JSON.stringify(one)}\n`).join(''))
}

/** Judges one, for ten seconds at most. */
export async function judgePattern({ source, flags }: Pick<Judged, 'source' | 'flags'>): Promise<Judged> {
  const judged = await check(source, flags, { timeout: JUDGE_MS_MAX })
  if (judged.status !== 'vulnerable') return { source, flags, verdict: judged.status }
  const { complexity, attack } = judged
  const pumps = attack.pumps.map(({ prefix, pump }) => ({ prefix, pump }))
  return { source, flags, verdict: complexity.summary.replace(' (fuzz)', ''), attack: { pumps, suffix: attack.suffix } }
}

/** Texts of a length that match slowly: from the attack that recheck found, and from the words of the pattern. */
export function worstTexts({ source, attack }: Judged, chars: number): string[] {
  const words = source.match(/[\p{L} ]{3,}/gu) ?? []
  const units = ['a', ' ', '\t', '1.', 'a ', '-', '(', '<', '"', '@', ...words]
  return [...(attack === undefined ? [] : [attackText(attack, chars)]), ...units.map((unit) => repeated(unit, chars))]
}

function attackText({ pumps, suffix }: Attack, chars: number): string {
  const each = Math.floor((chars - suffix.length) / Math.max(1, pumps.length))
  const text = pumps.map(({ prefix, pump }) =>
    (prefix + repeated(pump, Math.max(0, each - prefix.length))).slice(0, each),
  )
  return (text.join('') + suffix).slice(-chars)
}

function repeated(unit: string, chars: number): string {
  return unit.repeat(Math.ceil(chars / Math.max(1, unit.length))).slice(0, chars)
}
