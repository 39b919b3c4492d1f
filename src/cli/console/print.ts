/** print - prints the output of commands: one line of JSON with `--json`, otherwise sentences and tables. */
import type { ClientOptions } from './client.ts'
import { formatTable } from './table.ts'

/** Receives the exit code of the command that ran. */
export type Ended = (code: number) => void

/** Prints a value as one line of JSON. Returns the exit code 0. */
export function printJson(value: unknown): number {
  console.log(JSON.stringify(value))
  return 0
}

/** Prints an answer, as JSON if requested, otherwise formatted by `tell`. Returns the exit code 0. */
export function print<Answer>({ json }: ClientOptions, answer: Answer, tell: (answer: Answer) => string): number {
  console.log(json === true ? JSON.stringify(answer) : tell(answer))
  return 0
}

/** The fields of an object, one a line: nested objects as JSON, null as `-`. */
export function formatFields(value: object): string {
  const rows = Object.entries(value).map(([name, field]) => [
    name,
    typeof field === 'object' && field !== null ? JSON.stringify(field) : String(field ?? '-'),
  ])
  return formatTable(['field', 'value'], rows)
}
