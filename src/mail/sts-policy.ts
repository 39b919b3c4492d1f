/** sts-policy - the mail servers that a domain's MTA-STS policy (RFC 8461) names, and the cached policy. */

/** A policy as it is kept; instants in milliseconds. */
export interface StsPolicy {
  /** The id of its TXT record: another one there means another policy. */
  readonly id: string
  readonly mode: 'enforce' | 'testing' | 'none'
  /** Host names in lower case, or `*.` and a name. */
  readonly mx: readonly string[]
  readonly untilMs: number
}

/** A policy may be kept for a year and a day at most (RFC 8461 3.2). */
const AGE_MAX_SECONDS = 31_557_600
const MX_MAX = 100
/** A host name with `mx:` and blanks; RFC 1035 allows names of 253 characters. */
const MX_LINE_CHARS_MAX = 300

/** Reads a policy file. Null if it is malformed: then there is no policy (RFC 8461 3.3). */
export async function readPolicy(
  file: string,
  { id, nowMs }: { id: string; nowMs: number },
): Promise<StsPolicy | null> {
  // Its library is large, and most services never meet a policy.
  const { parsePolicy } = await import('mailauth/lib/mta-sts.js')
  try {
    const { mode, mx = [], maxAge } = parsePolicy(withoutExcess(file))
    if (maxAge === undefined) return null
    const untilMs = nowMs + Math.min(maxAge, AGE_MAX_SECONDS) * 1000
    return { id, mode, mx, untilMs }
  } catch {
    return null
  }
}

/** The file with its first hosts only, because the parser compares each host with all earlier ones. */
function withoutExcess(file: string): string {
  let left = MX_MAX
  const isKept = (line: string): boolean => {
    if (!/^\s*mx\s*:/i.test(line)) return true
    left -= 1
    return left >= 0 && line.length <= MX_LINE_CHARS_MAX
  }
  return file.split(/\r?\n/).filter(isKept).join('\n')
}

/** Whether the policy names the host: exactly, or by a `*` for exactly one label (RFC 8461 4.1). */
export function isNamed(policy: StsPolicy, host: string): boolean {
  const parent = host.slice(host.indexOf('.') + 1)
  return policy.mx.some((name) => (name.startsWith('*.') ? parent !== host && name.slice(2) === parent : name === host))
}
