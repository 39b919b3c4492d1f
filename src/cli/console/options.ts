/** options - the options that commands share, and how their values are read. */
import { type Command, InvalidArgumentError } from 'commander'
import { isInstant } from '../../views/instant.ts'

/** Options of every command of the API. */
export function withClientOptions(command: Command): Command {
  return command
    .option('--url <url>', 'address of the API (default: from the settings or first-run.json)', parseUrl)
    .option('--token <key>', 'API key (default: SENDWRIGHT_TOKEN, or the key of the right kind in first-run.json)')
    .option('--json', "print the API's answer as one line of JSON")
}

/** Options of a command that uses a server's key. */
export function withServerOptions(command: Command): Command {
  return withClientOptions(command).option(
    '--live',
    "with the live server's key of first-run.json, not the test server's",
  )
}

/** Options of every command that calls the operator listener. */
export function withOperatorOptions(command: Command): Command {
  return command
    .option('--url <url>', 'address of the operator listener (default: from the settings or first-run.json)', parseUrl)
    .option('--token <key>', 'operator key (default: SENDWRIGHT_OPERATOR_TOKEN, or the key in first-run.json)')
    .option('--json', "print the service's answer as one line of JSON")
}

/** Options of a command with changes, whose note goes into the audit log. */
export function withNote(command: Command): Command {
  return withOperatorOptions(command).option('--note <text>', 'reason for the audit log')
}

/** A value that may be given several times. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

/** `key=value`, which may be given several times. */
export function collectPair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) throw new InvalidArgumentError('Expected key=value.')
  return { ...before, [key]: value }
}

/** `Name: value`, which may be given several times. */
export function collectHeader(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([^:\s]+):\s*(.+)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new InvalidArgumentError('Expected "Name: value".')
  return { ...before, [name]: value }
}

/** A whole number from 0; the service checks its range. */
export function parseInteger(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number.')
}

/** A whole number, or `none` to take a limit away. (The library makes an empty text of a null.) */
export function parseIntegerOrNone(text: string): number | 'none' {
  return text === 'none' ? text : parseInteger(text)
}

/** The result of `parseIntegerOrNone`, as the API takes it. */
export function orNull(value: number | 'none' | undefined): number | null | undefined {
  return value === 'none' ? null : value
}

/** An http or https URL. */
export function parseUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text
  throw new InvalidArgumentError('Expected an http or https URL.')
}

/** A date-time, or a day, in a form of the API; without an offset in local time. */
export function parseInstant(text: string): string {
  if ([text, `${text}Z`, `${text}T00:00:00Z`].some(isInstant)) return new Date(text).toISOString()
  throw new InvalidArgumentError('Expected a date-time such as 2026-11-20T00:00:00Z.')
}
