/**
 * store - whether the store syncs acknowledged writes, has free memory, and agrees with our clock
 *
 * Spec operator.health
 */

import type { Finding } from '../../schemas/operator/health.ts'
import type { StoreCondition } from '../store/condition.ts'
import { FILLING_SHARE, FULL_SHARE, parseFill } from '../store/memory-pressure.ts'
import { failed, warning, well } from './finding.ts'

const MIB = 1024 ** 2
const CLOCK_MS_MAX = 2000
const LOOK_AT_LOG =
  'The service fixes this itself. If it does not within a minute, check the log of the process that runs Redis'

/** Facts about the store that it does not report itself. */
export interface StoreKnown {
  /** Whether it is the Redis of DATA_DIR. */
  readonly isOwn: boolean
  /** The fault found by the periodic check; null if there is none. */
  readonly fault: string | null
  /** Stored values that were damaged when they were read, by the kind of row. */
  readonly damaged: ReadonlyMap<string, number>
}

/** The findings about its settings, its memory and its last write while it runs. */
export async function examineStore(
  store: Pick<StoreCondition, 'refusal' | 'info'>,
  { isOwn, fault, damaged }: StoreKnown,
): Promise<Finding> {
  if (fault !== null)
    return failed(
      'store',
      `Rejecting all requests: ${fault}`,
      isOwn ? LOOK_AT_LOG : 'Follow the instruction in the message',
    )
  const refusal = await store.refusal()
  if (refusal !== null)
    return failed('store', refusal, 'Set them in redis.conf, and at once with CONFIG SET; then restart the service')
  if (damaged.size > 0)
    return failed(
      'store',
      `Stored values were damaged when they were read since the start: ${[...damaged].map((one) => one.join(' ')).join(', ')}`,
      'Run sendwright doctor --deep: it lists the rows. Check the memory and the disk, and restore a backup',
    )
  const text = await store.info()
  const info = parseInfo(text)
  if (info.get('aof_last_write_status') === 'err')
    return failed('store', 'The last write of the append-only file failed', "Check Redis's log and its disk")
  const max = Number(info.get('maxmemory'))
  const fill = parseFill(text)
  if (max === 0)
    return warning('store', 'Redis has no maxmemory', 'Set maxmemory to three quarters of the memory that it may use')
  const share = `${Math.round(fill * 100)} % of maxmemory is used`
  const more = isOwn
    ? `Set REDIS_MAXMEMORY to ${Math.ceil((max * 2) / MIB)}mb, if the machine has it, and restart the process that runs Redis`
    : `Raise maxmemory: CONFIG SET maxmemory ${max * 2}, and in redis.conf`
  if (fill >= FULL_SHARE) return failed('store', `${share}: new mail is refused`, more)
  if (fill >= FILLING_SHARE)
    return warning('store', `${share}; from ${FULL_SHARE * 100} % on new mail is refused`, more)
  return well('store', `Redis ${info.get('redis_version') ?? info.get('valkey_version')}, ${share}`)
}

/**
 * Compares the store's clock, which every deadline follows, with this machine's. If the store runs on this machine,
 * both are one clock, so its synchronization is checked too. `isKept` returns the same as `readClockSync`.
 */
export async function examineClock(
  store: Pick<StoreCondition, 'timeMs'>,
  nowMs: () => number,
  isKept: () => Promise<boolean | null>,
): Promise<Finding> {
  const before = nowMs()
  const storeMs = await store.timeMs()
  const after = nowMs()
  const off = Math.round(Math.max(before - storeMs, storeMs - after, 0))
  const message = `The clocks of the store and this machine are ${off} ms apart`
  if (off > CLOCK_MS_MAX)
    return failed('clock', message, 'Let NTP set both clocks (chronyc tracking, timedatectl set-ntp true)')
  const kept = await isKept()
  const agree = 'The clocks of the store and this machine agree'
  if (kept === false)
    return warning(
      'clock',
      `${agree}, but nothing synchronizes this machine's`,
      'Let NTP set it: timedatectl set-ntp true, or install chrony; then timedatectl shows "System clock synchronized: yes"',
    )
  return well(
    'clock',
    kept === true ? `${agree}, and are synchronized` : `${agree}; whether NTP sets them cannot be checked here`,
  )
}

/** Names and values of an answer to INFO. */
function parseInfo(text: string): Map<string, string> {
  const pairs = text.split('\r\n').filter((line) => line.includes(':'))
  return new Map(pairs.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}
