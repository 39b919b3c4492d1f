/**
 * cluster-rules - requirements of a Redis Cluster, so that answered data is kept and one unreachable node does not stop
 * the others
 *
 * A node that does not answer is not judged here: it may come back as it was.
 */
import type { Durability } from '../embedded/binary.ts'
import { findBreaches } from '../embedded/durable.ts'
import { breachSentence } from '../redis/settings.ts'
import type { ClusterLook, NodeLook } from './cluster-look.ts'
import { type NodeAnswers, silenceFaults } from './node-look.ts'

/** One node may fail, and answered data is still in two memories and on two disks. */
const REPLICAS_MIN = 2
/** Primaries that a sentence names. */
const TOLD_MAX = 6
/** Redis judges a replica's lag in whole seconds; a longer one would let writes in that no replica gets. */
const LAG_SECONDS_MAX = 10
const VERSION_MIN = [7, 0] as const

/** Every fault that keeps the cluster from being used, the gravest first. A sentence each, with its fix. */
export function clusterFaults(look: ClusterLook, durability: Durability): string[] {
  const { badSeeds, nodes, strangers, uncovered } = look
  const [first] = nodes
  const faults = badSeeds.flatMap(({ name, why }) => silenceFaults(name, why))
  for (const name of strangers)
    faults.push(`${name} and ${first?.name} are nodes of different clusters: REDIS_URL names nodes of one`)
  if (uncovered.length > 0)
    faults.push(
      `No Redis has ${uncovered.length} of the shards: assign every slot to a primary; redis-cli --cluster check <node> lists the unassigned`,
    )
  if (durability === 'replica') faults.push(...tooFewReplicas(nodes))
  for (const node of nodes) if (node.answers !== null) faults.push(...nodeFaults(node, node.answers, durability))
  return faults
}

/**
 * Nodes that are down count: they come back, and a start must not wait for them. A former primary then follows its
 * successor.
 */
function tooFewReplicas(nodes: readonly NodeLook[]): string[] {
  const primaries = nodes.filter(({ shards }) => shards.length > 0)
  const poor = primaries
    .map(({ name }) => ({ name, replicas: nodes.filter((node) => node.primary === name).length }))
    .filter(({ replicas }) => replicas < REPLICAS_MIN)
  const lacking = poor.reduce((sum, { replicas }) => sum + REPLICAS_MIN - replicas, 0)
  const away = nodes.filter(({ answers, primary, shards }) => answers === null && primary === null && !shards.length)
  if (lacking <= away.length) return []
  const told = poor.slice(0, TOLD_MAX).map(({ name, replicas }) => `${name} has ${replicas}`)
  return [
    `DURABILITY=replica requires two replicas of each primary: ${told.join(', ')}${poor.length > TOLD_MAX ? ', ...' : ''}; add some, or set DURABILITY=fsync`,
  ]
}

function nodeFaults({ name, isPrimary }: NodeLook, answers: NodeAnswers, durability: Durability): string[] {
  const { info, settings } = answers
  const version = info.get('redis_version') ?? '0'
  if (isOlder(version))
    return [`${name} is too old for a cluster: it is Redis ${version}, and Redis 7.0 or Valkey 7.2 is required`]
  if (settings.size === 0) return [`Cannot read the settings of ${name}: allow CONFIG GET for the user of REDIS_URL`]
  const is = (setting: string): string => settings.get(setting) ?? ''
  const faults: string[] = []
  const broken = breachSentence(findBreaches([...settings].flat(), durability), durability)
  if (broken !== null) faults.push(`${name}: ${broken}`)
  if (is('cluster-require-full-coverage') !== 'no')
    faults.push(
      `${name} would refuse requests while another primary is down: ${order(['cluster-require-full-coverage', 'no'])}`,
    )
  if (is('cluster-allow-reads-when-down') !== 'no')
    faults.push(
      `${name} would return outdated data while it is disconnected: ${order(['cluster-allow-reads-when-down', 'no'])}`,
    )
  if (durability === 'replica') {
    const lag = Number(is('min-replicas-max-lag'))
    if (Number(is('min-replicas-to-write')) < 1 || lag < 1 || lag > LAG_SECONDS_MAX)
      faults.push(
        `${name} would accept writes without a replica: ${order(['min-replicas-to-write', '1'], ['min-replicas-max-lag', '5'])}`,
      )
  } else if (!isPrimary && is('cluster-replica-no-failover') !== 'yes')
    faults.push(
      `${name} is a replica that would take over without all acknowledged writes: ${order(['cluster-replica-no-failover', 'yes'])}; or set DURABILITY=replica, with two replicas of each primary`,
    )
  return faults
}

function order(...settings: readonly (readonly [name: string, value: string])[]): string {
  const orders = settings.map(([name, value]) => `CONFIG SET ${name} ${value}`)
  return `${orders.join(', ')}, and the same in its redis.conf`
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])
}
