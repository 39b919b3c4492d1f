/** finding - the result of one check: well, a warning, or broken, with the step that fixes it. */

import type { ExaminedName, Finding } from '../../schemas/operator/health.ts'

/** Nothing to do. */
export function well(name: ExaminedName, message: string): Finding {
  return { name, status: 'ok', message, fix: null }
}

/** Mail works, but not as well as it could. */
export function warning(name: ExaminedName, message: string, fix: string): Finding {
  return { name, status: 'warning', message, fix }
}

/** Mail does not work, or data is at risk. */
export function failed(name: ExaminedName, message: string, fix: string): Finding {
  return { name, status: 'failed', message, fix }
}

/** The words that name a DNS record to create. */
export function recordToCreate(host: string, type: string, value: string): string {
  return `Create the DNS record: ${host} ${type} ${value}`
}
