/** read-together - several groups of facts in one atomic step, where how many each has is only known at the time */
import type { ViewFact } from '../../cluster/behaviour.ts'
import type { Reader, Values } from './key.ts'

type ValuesOfEach<Groups extends readonly (readonly ViewFact[])[]> = {
  readonly [Place in keyof Groups]: Values<Groups[Place]>
}

/** The results of each group, in their order; null if the store did not answer. */
export async function readTogether<const Groups extends readonly (readonly ViewFact[])[]>(
  read: Reader,
  shard: number,
  groups: Groups,
): Promise<ValuesOfEach<Groups> | null> {
  const seen = await read(shard, groups.flat())
  if (seen === null) return null
  const left = seen.values()
  const values = groups.map((facts) => facts.map(() => left.next().value))
  return values as unknown as ValuesOfEach<Groups>
}
