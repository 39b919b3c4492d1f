/** check-memory - the owner's copy of a shard equals the contents of the store. */

import { entityKey } from '../../cluster/keyspace.ts'
import { withoutSum, withSum } from '../../cluster/sum.ts'
import { ACCOUNTS } from './client.ts'
import { countersAt, streamAt } from './contents.ts'
import type { Simulation } from './simulation.ts'
import { ACCOUNT, refOf } from './toy.ts'
import { shardOfAccount } from './toy-keys.ts'

/** Compares the memory of every running shard object with the store. */
export async function checkMemory(sim: Simulation): Promise<void> {
  for (const account of ACCOUNTS) {
    const shard = shardOfAccount(account)
    const owner = (await sim.base.metas([shard]))?.[0]?.owner
    const process = sim.processes.find(({ worker, state }) => worker.id === owner && state === 'running')
    const memory = process?.shardOf(shard)?.memory
    if (memory === undefined) {
      sim.observer.violated(`Shard ${shard} has no owner`)
      continue
    }
    const ref = refOf(account)
    const entries = await streamAt(sim, shard, entityKey(shard, 'account', account))
    const stored = entries[entries.length - 1]?.fields[3] ?? withSum(JSON.stringify(ACCOUNT.empty))
    const state = withoutSum(stored, 'state')
    if (memory.hasEntity(ref) && JSON.stringify(memory.entity(ref, 0)) !== state)
      sim.observer.violated(`${account}: remembered ${JSON.stringify(memory.entity(ref, 0))}, stored ${state}`)
    const counter = (await countersAt(sim, shard)).get(account) ?? 'null'
    if (memory.hasCounter(account) && JSON.stringify(memory.counter(account, 0)) !== counter)
      sim.observer.violated(`${account}: remembered ${JSON.stringify(memory.counter(account, 0))}, stored ${counter}`)
  }
}
