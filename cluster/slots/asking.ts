/** asking - commands for a slot that a node takes in (Redis Cluster specification, "ASKING") */
import type { Redis } from 'ioredis'

/** Out: answers. Throws the first error. */
export async function asking(client: Redis, commands: readonly (readonly (string | Buffer)[])[]): Promise<unknown[]> {
  const pipeline = client.pipeline()
  for (const [name = '', ...args] of commands) pipeline.call('ASKING').call(String(name), ...args)
  const answers = (await pipeline.exec()) ?? []
  const failed = answers.find(([error]) => error !== null)?.[0]
  if (failed) throw failed
  return answers.filter((_answer, at) => at % 2 === 1).map(([, value]) => value)
}
