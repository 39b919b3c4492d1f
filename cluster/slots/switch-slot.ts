/**
 * switch-slot - gives a slot to the node that has all its keys (Redis Cluster specification, "SETSLOT")
 *
 * Guarantee: a node that was frozen or disconnected when it got the order does not take the slot if it comes back
 * after the shard may have been moved back.
 */
import type { MoveEnd } from './copy-keys.ts'

/** An order that takes longer to arrive is refused. */
const SWITCH_MS_MAX = 2_000

/** ARGV: slot, id of the node, deadline by its clock. Answers 1, or 0 if the deadline has passed. */
export const SWITCH = `#!lua flags=allow-oom
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[3]) then return 0 end
redis.call('CLUSTER', 'SETSLOT', ARGV[1], 'NODE', ARGV[2])
return 1
`

/** Gives a node the slot. Throws Error, a sentence, if it has not taken it in time. */
export async function switchSlot({ client, id, name }: MoveEnd, slot: number): Promise<void> {
  const [seconds, micros] = (await client.call('TIME')) as [string, string]
  const untilMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) + SWITCH_MS_MAX
  if ((await client.eval(SWITCH, 0, slot, id, untilMs)) !== 1)
    throw new Error(`${name} did not respond and has not taken slot ${slot}: run the command again`)
}
