/**
 * crash-diagnostics - evidence about a Redis that does not answer or has ended, from its process, its disk and the
 * end of its log.
 *
 * A Redis whose disk is full cannot log its end, and a killed one logs nothing, so the disk and the process are
 * checked too. Each answer is one line for people.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { livingRedisPid } from './probe.ts'

const TAIL_BYTES = 8192
const WORDS_MAX = 3
/** Log lines older than this did not cause the end. */
const WORDS_MS_MAX = 300_000
const CHARS_MAX = 600
/** Of /proc/<pid>/stat, counted from the state: bytes of address space. */
const MEMORY_FIELD = 20
/** Warnings that Redis logs about its machine at each start, none of them fatal. */
const ADVICE = /^WARNING /
/** With less than this a redis may fail at its next write. */
const FREE_BYTES_MIN = 16 * 1024 ** 2

/** State of a process in `/proc`, and its meaning for callers that wait for its answer. */
const STATES: Readonly<Record<string, (pid: number) => string>> = {
  T: (pid) => `is stopped by a signal: kill -CONT ${pid} resumes it`,
  t: () => 'is held by a debugger',
  D: () => 'waits for its disk',
  Z: () => 'has ended',
  X: () => 'has ended',
}

/** Why the redis of a directory does not answer, as far as can be seen. */
export function describeSilence(directory: string): string {
  const pid = livingRedisPid(directory)
  const nobody = existsSync('/proc/self') ? `No redis-server runs in ${directory}` : null
  const who = pid === null ? nobody : describeProcess(pid)
  return sentences([who, describeDisk(directory), lastWords(directory)]) || 'Its state is unknown'
}

/**
 * Why the redis of a directory has ended, or only its connection, as far as can be seen. Takes its process, if known.
 */
export function describeEnd(directory: string, pid: number | null): string {
  if (pid !== null && isRunning(pid))
    return sentences([`redis-server ${pid} runs, and has ended its connection`, lastWords(directory)])
  const [disk, words] = [describeDisk(directory), lastWords(directory)]
  const silence =
    'It logged nothing before its end: it was killed by a user, or by the kernel when memory ran out (see dmesg)'
  return sentences([disk, words ?? (disk === null ? silence : null)])
}

/** The state of a process, by its id. */
export function describeProcess(pid: number): string {
  const [state = 'X'] = readProcessStat(pid)
  return `redis-server ${pid} ${STATES[state]?.(pid) ?? 'runs'}`
}

/** A process that is ending gives its memory back before its connections end. */
function isRunning(pid: number): boolean {
  const fields = readProcessStat(pid)
  return !['Z', 'X', undefined].includes(fields[0]) && fields[MEMORY_FIELD] !== '0'
}

/** Fields of /proc/<pid>/stat from the state on; empty if there is no such process. */
function readProcessStat(pid: number): string[] {
  const text = readText(`/proc/${pid}/stat`)
  return text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' ')
}

/** The last lines of a directory's `redis.log`, unchanged; '' if there is no log. */
export function logTail(directory: string, lines: number): string {
  return readTail(join(directory, 'redis.log')).trimEnd().split('\n').slice(-lines).join('\n')
}

/**
 * The latest warnings that the last Redis of a directory logged after it was ready, if recent; otherwise null.
 */
function lastWords(directory: string): string | null {
  const lines = readTail(join(directory, 'redis.log')).split('\n').flatMap(parseLine)
  const pid = lines.at(-1)?.pid
  const own = lines.filter((line) => line.pid === pid)
  const readyAt = own.findLastIndex(({ text }) => /ready to accept connections|server initialized/i.test(text))
  const sinceMs = Date.now() - WORDS_MS_MAX
  const warnings = own
    .slice(readyAt + 1)
    .filter(({ atMs, isWarning, text }) => isWarning && atMs > sinceMs && !ADVICE.test(text))
  if (warnings.length === 0) return null
  const words = warnings.slice(-WORDS_MAX).map(({ text }) => text)
  return `Its last words: ${words.join(' / ').slice(-CHARS_MAX)}`
}

interface Line {
  readonly pid: string
  readonly atMs: number
  readonly isWarning: boolean
  readonly text: string
}

/** `<pid>:<role> <day> <month> <year> <time> <level> <text>`, with `#` for a warning. */
function parseLine(line: string): Line[] {
  const [, pid, date = '', level, text] = /^(\d+):[A-Z] (\d+ \w+ \d+ \S+) ([.\-*#]) (.*)$/.exec(line) ?? []
  if (pid === undefined || text === undefined) return []
  return [{ pid, atMs: Date.parse(date), isWarning: level === '#', text }]
}

function describeDisk(directory: string): string | null {
  try {
    const { bavail, bsize } = statfsSync(directory)
    const free = bavail * bsize
    return free < FREE_BYTES_MIN ? `Its disk is full: ${free} bytes are free under ${directory}` : null
  } catch {
    return `${directory} cannot be looked at`
  }
}

function sentences(parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null).join('. ')
}

/** The end of a file; '' if it cannot be read. */
function readTail(path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      const bytes = Buffer.alloc(Math.min(TAIL_BYTES, size))
      const read = readSync(file, bytes, 0, bytes.length, size - bytes.length)
      return bytes.toString('utf8', 0, read)
    } finally {
      closeSync(file)
    }
  } catch {
    return ''
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
