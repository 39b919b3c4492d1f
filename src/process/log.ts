/** log - what the service says to its operator: pretty on a terminal, JSON otherwise.
 *
 *  Guarantees: no personal data. Fields that can hold it are blanked by name, an error is reduced to type, code,
 *  message and stack (ioredis hangs the whole command on its errors), and whatever still looks like an e-mail address
 *  is blanked in the finished line. A sentence that is said again and again is counted instead (repeats.ts).
 */
import { createRequire } from 'node:module'
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import type { PinoPretty } from 'pino-pretty'
import type { LOG_LEVELS } from '../../schemas/config.ts'
import { makeRecords, NO_RECORDS, type Records } from './records.ts'
import { Repeats } from './repeats.ts'

export type Log = Logger

type LogMethod = NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>

export interface LogOptions {
  level: (typeof LOG_LEVELS)[number]
  /** Whether a person reads along. */
  isTerminal: boolean
  /** Where the lines go; standard output by default. */
  sink?: DestinationStream
}

/** Names of fields that hold, in our own data, personal data or the content of a message. */
const PERSONAL_FIELDS = [
  'address',
  'email',
  'recipient',
  'recipients',
  'envelope',
  'from',
  'to',
  'cc',
  'bcc',
  'subject',
  'text',
  'html',
  'headers',
  'metadata',
  'body',
  'token',
  'authorization',
  'command',
]
/** An error can quote text of a client or a server. */
const LINE_CHARS_MAX = 16_384
/** Lines that wait to be written. */
const BUFFER_BYTES_MAX = 4 * 1024 * 1024
/** A field is looked for at the top of a line and this many objects below it. */
const DEPTH_MAX = 3
/** Levels as pino numbers them. */
const INFO = 30
const FATAL = 60

// RFC 5321 4.1.2, loosely: rather too much is blanked than too little. The local part's bound keeps it linear.
const ADDRESS =
  /(?:\\"[^"\n]{1,128}\\"|[^\s"<>()[\],;:\\]{1,128})@(?:[\p{L}\p{N}-]{1,63}\.){1,20}[\p{L}][\p{L}\p{N}-]{0,62}/gu
const ADDRESS_LITERAL = /[^\s"<>()[\],;:\\]{1,128}@\[[0-9a-zA-Z:.]{2,64}\]/g

/** Makes the log of this process. */
export function makeLog(options: LogOptions): Log {
  return makeLogs(options).log
}

/** The log of a process, and the records written to the same file, one line each. */
export interface Logs {
  readonly log: Log
  readonly records: Records
}

/** Makes the log of this process with its records. */
export function makeLogs({ level, isTerminal, sink }: LogOptions): Logs {
  const destination = isTerminal ? forPeople(sink) : (sink ?? inTheBackground())
  const log = pino(makeOptions(level), destination)
  if (!log.isLevelEnabled('info')) return { log, records: NO_RECORDS }
  // Searching each line for personal fields costs a hundred times as much as the line, and these lines have none.
  const write = (facts: object, msg: string): void => {
    const line = JSON.stringify({ level: 'info', time: new Date().toISOString(), ...facts, msg })
    destination.write(`${withoutAddresses(line)}\n`)
  }
  return { log, records: makeRecords(write, () => performance.now()) }
}

function makeOptions(level: LogOptions['level']): LoggerOptions {
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: withoutCommand, error: withoutCommand, reason: withoutCommand },
    redact: { paths: personalPaths(), censor: '<personal>' },
    hooks: {
      streamWrite: (line) => withoutAddresses(cutLine(line)),
      logMethod: bounded(new Repeats(() => performance.now())),
    },
  }
}

function forPeople(sink: DestinationStream | undefined): DestinationStream {
  // It is loaded only for a terminal, to keep a start short.
  const pretty: typeof PinoPretty = createRequire(import.meta.url)('pino-pretty')
  return pretty({ colorize: sink === undefined, sync: true, ...(sink ? { destination: sink } : {}) })
}

/**
 * Standard output, written while the loop continues: lines logged during a write go with the next. A stalled reader
 * blocks nothing; lines beyond a bound are dropped. The rest is written when the process ends.
 */
function inTheBackground(): DestinationStream {
  return pino.destination({ dest: 1, sync: false, maxLength: BUFFER_BYTES_MAX })
}

/**
 * Lets a line through, or counts it if its sentence was logged too often. Fatal and debug lines are always logged.
 */
function bounded(repeats: Repeats): LogMethod {
  return function write(args, method, level) {
    const sentence = args.find((one): one is string => typeof one === 'string') ?? ''
    const more = (times: number): void => method.apply(this, [{ times }, `Repeated within a minute: ${sentence}`])
    const isBound = level >= INFO && level < FATAL
    if (!isBound || repeats.maySay(sentence, more)) method.apply(this, args)
  }
}

/** The loggable part of an error: never the command that ioredis hangs on it. Other values pass unchanged. */
function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code } = error as NodeJS.ErrnoException
  return { type: error.name, message: error.message, ...(code === undefined ? {} : { code }), stack: error.stack ?? '' }
}

/** A line of bounded length; a longer one is replaced by a line with its start as text. */
function cutLine(line: string): string {
  if (line.length <= LINE_CHARS_MAX) return line
  // Only half of it is kept, because an address divided by the first cut is not recognized as an address.
  const start = withoutAddresses(line.slice(0, LINE_CHARS_MAX)).slice(0, LINE_CHARS_MAX / 2)
  return `${JSON.stringify({ level: 'warn', msg: 'A line was too long', start })}\n`
}

/** The text with everything that looks like an e-mail address replaced by `<address>`. */
export function withoutAddresses(text: string): string {
  return text.includes('@') ? text.replace(ADDRESS, '<address>').replace(ADDRESS_LITERAL, '<address>') : text
}

function personalPaths(): string[] {
  return Array.from({ length: DEPTH_MAX }, (_, depth) =>
    PERSONAL_FIELDS.map((name) => '*.'.repeat(depth) + name),
  ).flat()
}
