/** doctor - `sendwright doctor`: what delivery needs of the world around it, and how to mend what is broken. */
import type { Finding, Health } from '../../schemas/health.ts'
import { type ClientOptions, makeClient } from './client.ts'

const MARKS: Readonly<Record<Finding['status'], string>> = { ok: 'ok', warning: 'WARN', failed: 'FAIL' }

/**
 * Has the running service examine itself and prints what was found.
 * @returns 0 when nothing has failed, else 1
 */
export async function runDoctor(options: ClientOptions): Promise<number> {
  const health = await makeClient(options, 'operator').get<Health>('/v1/operator/health')
  console.log(options.json ? JSON.stringify(health) : formatHealth(health))
  return health.ok ? 0 : 1
}

/** One line for each finding, and the way to mend it below. */
function formatHealth({ ok, findings }: Health): string {
  const lines = findings.flatMap(({ name, status, message, fix }) => {
    const line = `${MARKS[status].padEnd(5)}${name.padEnd(16)}${message}`
    return fix === null ? [line] : [line, `${' '.repeat(21)}-> ${fix}`]
  })
  const failures = findings.filter(({ status }) => status === 'failed').length
  return [...lines, '', ok ? 'Nothing is broken' : `Broken: ${failures} of ${findings.length}`].join('\n')
}
