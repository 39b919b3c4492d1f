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

const KEYS: readonly string[] = ['version', 'mode', 'max_age']
const MODES: readonly string[] = ['enforce', 'testing', 'none'] satisfies readonly StsPolicy['mode'][]

/**
 * The id of a domain's policy by its TXT records, each one string. Null without one: several records are as good as
 * none (RFC 8461 3.1). Blanks and the case of names do not matter.
 */
export function readPolicyId(records: readonly string[]): string | null {
  const fields = records.map((record) =>
    record
      .trim()
      .split(';')
      .map((field) => field.trim()),
  )
  const [own, ...others] = fields.filter(([version = '', ...rest]) => rest.length > 0 && /^v=STSv1$/i.test(version))
  if (own === undefined || others.length > 0) return null
  for (const field of own.slice(1)) {
    const [name = '', value = ''] = splitAt(field, '=')
    if (name.toLowerCase() === 'id' && value !== '') return value
  }
  return null
}

/** Reads a policy file. Null if it is malformed: then there is no policy (RFC 8461 3.3). */
export function readPolicy(file: string, { id, nowMs }: { id: string; nowMs: number }): StsPolicy | null {
  const fields = new Map<string, string>()
  const hosts = new Set<string>()
  let hostLines = 0
  for (const line of file.split(/\r?\n/)) {
    const [name = '', value = ''] = splitAt(line, ':')
    const key = name.toLowerCase()
    if (key === 'mx') {
      hostLines += 1
      if (hostLines <= MX_MAX && line.length <= MX_LINE_CHARS_MAX) hosts.add(value.toLowerCase())
    } else if (KEYS.includes(key) && !fields.has(key)) {
      // Of a field that is given twice, the first one counts (RFC 8461 3.2).
      fields.set(key, value)
    }
  }
  const mode = fields.get('mode')?.toLowerCase() ?? ''
  const maxAge = fields.get('max_age') ?? ''
  if (fields.get('version') !== 'STSv1' || !MODES.includes(mode) || !/^\d{1,10}$/.test(maxAge)) return null
  if (Number(maxAge) > AGE_MAX_SECONDS || (mode !== 'none' && hosts.size === 0)) return null
  return { id, mode: mode as StsPolicy['mode'], mx: [...hosts], untilMs: nowMs + Number(maxAge) * 1000 }
}

/** The trimmed texts before and after a separator; nothing without one. */
function splitAt(text: string, separator: string): [before: string, after: string] | [] {
  const at = text.indexOf(separator)
  return at < 0 ? [] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

/** Whether the policy names the host: exactly, or by a `*` for exactly one label (RFC 8461 4.1). */
export function isNamed(policy: StsPolicy, host: string): boolean {
  const parent = host.slice(host.indexOf('.') + 1)
  return policy.mx.some((name) => (name.startsWith('*.') ? parent !== host && name.slice(2) === parent : name === host))
}
