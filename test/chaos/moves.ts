/** moves - a shard of a Redis Cluster changes its primary under load, as with `sendwright cluster move` */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { MOVE_STEPS, type MoveStep } from '../../cluster/slots/move-slot.ts'
import { SHARD_SLOTS } from '../../cluster/slots/slot-map.ts'
import { moveShards, readHolders } from '../../src/store/cluster/move-shards.ts'
import { spawnNode } from '../support/machine/node.ts'
import { until } from '../support/machine/until.ts'
import type { ClusterFleet } from '../support/service/cluster-fleet.ts'
import { wellAgain } from '../support/store/cluster-well.ts'
import type { ClusterNode, TestCluster } from '../support/store/redis-cluster.ts'
import { replicasOf } from './primary-losses.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
const ORDERS_MAX = 10
const CLEAR_MS_MAX = 30_000
/** An order starts within this, and has ended the move soon after. */
const ORDER_MS_MAX = 1_500

type Settings = { readonly redisUrls: readonly string[]; readonly durability: 'replica' }

const settingsOf = ({ seeds }: TestCluster): Settings => ({ redisUrls: seeds, durability: 'replica' })

/** Moves a shard to another primary. */
export async function moveShard({ cluster }: Pick<ClusterFleet, 'cluster'>, shard: number): Promise<void> {
  await give(cluster, shard, (await otherPrimary(cluster, shard)).name)
}

/**
 * The lost part of a move, the kind of loss, and the step after which it happens; an order is killed at any moment.
 */
export interface Tear {
  readonly which: 'source' | 'target' | 'order'
  /** `frozen`: until the move is over. */
  readonly how: 'killed' | 'frozen'
  readonly step: MoveStep
}

/** The n-th of all of them. */
export function tearOf(n: number): Tear {
  const whiches = ['source', 'target', 'order'] as const
  return {
    which: whiches[n % whiches.length] ?? 'order',
    how: n % 2 === 0 ? 'killed' : 'frozen',
    step: MOVE_STEPS[Math.floor(n / whiches.length) % MOVE_STEPS.length] ?? 'fenced',
  }
}

/**
 * Moves a shard to another primary with a loss on the way. The order is repeated until the shard has arrived at the
 * target or its successor, and the lost node returns. Throws Error if the shard does not arrive, or keys of it are
 * left elsewhere.
 */
export async function tearMove({ cluster }: Pick<ClusterFleet, 'cluster'>, shard: number, tear: Tear): Promise<void> {
  const slot = SHARD_SLOTS[shard] ?? 0
  const [source, target] = [await cluster.primaryOf(slot), await otherPrimary(cluster, shard)]
  const goals = [target, ...(await replicasOf(cluster, target))].map(({ name }) => name)
  const struck = tear.which === 'source' ? source : target
  let isStruck = false
  let isBack = false
  const comeBack = async (): Promise<void> => {
    if (!isStruck || isBack) return
    isBack = true
    if (tear.how === 'killed') await struck.start()
    else struck.signal('SIGCONT')
  }
  if (tear.which === 'order') await killOrder(cluster, shard, target.name)
  const at = async (step: MoveStep): Promise<void> => {
    if (tear.which === 'order' || step !== tear.step || isStruck) return
    isStruck = true
    if (tear.how === 'killed') await struck.kill()
    else struck.signal('SIGSTOP')
  }
  for (let orders = 1; ; orders += 1) {
    const holders = await readHolders(settingsOf(cluster))
    const to = holders.find(({ name }) => goals.includes(name))?.name
    const failure = to === undefined ? 'nobody has its place' : await give(cluster, shard, to, at).catch(messageOf)
    if (failure === undefined) break
    // Before the fence no move continues without it.
    if (tear.step === 'ahead') await comeBack()
    if (orders === ORDERS_MAX) throw new Error(`Shard ${shard} did not get to ${target.name}: ${failure}`)
    await pause(ORDER_MS_MAX)
  }
  await comeBack()
  await wellAgain(cluster)
  await until(async () => (await havingKeys(cluster, slot)).length === 3, CLEAR_MS_MAX).catch(async () => {
    const told = (await havingKeys(cluster, slot)).map(async ({ name, client }) => {
      const role = /role:\w+[\s\S]*?(?:master_port:\d+|connected_slaves)/.exec(await client.info('replication'))?.[0]
      return `${name} ${role} ${await client.call('CLUSTER', 'GETKEYSINSLOT', slot, 20)}`
    })
    throw new Error(`Not three nodes have keys of shard ${shard}: ${(await Promise.all(told)).join('\n')}`)
  })
}

/** The nodes that have keys of a slot. */
async function havingKeys({ nodes }: TestCluster, slot: number): Promise<ClusterNode[]> {
  const counts = await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'COUNTKEYSINSLOT', slot)))
  return nodes.filter((_, place) => Number(counts[place]) > 0)
}

async function give(
  cluster: TestCluster,
  shard: number,
  to: string,
  at: (step: MoveStep) => Promise<void> = async () => undefined,
): Promise<void> {
  const order = { shards: [shard], to, progress: () => undefined, done: () => undefined, at }
  await moveShards(settingsOf(cluster), order)
}

function messageOf({ message }: Error): string {
  return message
}

async function otherPrimary(cluster: TestCluster, shard: number): Promise<ClusterNode> {
  const { name } = await cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)
  const holders = await readHolders(settingsOf(cluster))
  const other = holders.find((holder) => holder.name !== name && holder.shards.length > 0)
  const node = cluster.nodes.find((one) => one.name === other?.name)
  if (node === undefined) throw new Error('There are two primaries and more')
  return node
}

/** An order that is typed, and ended by SIGKILL at a moment by chance. */
async function killOrder({ seeds }: TestCluster, shard: number, to: string): Promise<void> {
  const env = { PATH: process.env.PATH, REDIS_URL: seeds.join(','), DURABILITY: 'replica', SECRET_KEY: 'x'.repeat(64) }
  const child = spawnNode([MAIN, 'cluster', 'move', String(shard), to], { env })
  child.stdout.resume()
  child.stderr.resume()
  const gone = once(child, 'exit')
  await pause(Math.random() * ORDER_MS_MAX)
  child.kill('SIGKILL')
  await gone
}
