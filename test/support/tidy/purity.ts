/** purity - no clock, no randomness, no environment and no waiting in code that decides. */
import { codeOf, type Source } from './source.ts'

/** Files of cluster/ whose work is the clock, a process or a socket. */
const CLUSTER_HANDS = /^cluster\/(clock\.ts|redis\/|slots\/|embedded\/|worker\/(worker|watchdog|watchdog-worker)\.ts)/
/** The files that read the environment, and those that set variables for a native library. */
const ENVIRONMENT_HANDS = new Set(['src/process/config.ts', 'src/http/engine/uws.ts'])

const IMPURE = /\b(?:Date|performance|Math\.random|process|randomUUID|randomBytes|randomInt|getRandomValues|hrtime)\b/g
const IMPURE_MAIL =
  /\bDate\.now\b|\bnew Date\(\)|\b(?:performance|Math\.random|process\.env|randomUUID|randomBytes|randomInt)\b/g

/** Clock, randomness, environment and waiting in code that must not use them. */
export function impurities({ path, text }: Source): string[] {
  const code = codeOf(text)
  const find = (pattern: RegExp) => [...new Set(code.match(pattern) ?? [])].map((word) => `${path} contains ${word}`)
  if (/^src\/(?:actors|state)\//.test(path)) return [...find(IMPURE), ...find(/\b(?:await|async|Promise)\b/g)]
  if (path.startsWith('cluster/') && !CLUSTER_HANDS.test(path)) return find(IMPURE)
  if (path.startsWith('src/mail/')) return find(IMPURE_MAIL)
  // The environment is read in one place.
  if (path.startsWith('src/') && !ENVIRONMENT_HANDS.has(path)) return find(/\bprocess\.env\b/g)
  if (path.startsWith('schemas/') || path.startsWith('cluster/')) return find(/\bprocess\.env\b/g)
  return []
}
