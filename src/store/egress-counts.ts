/**
 * egress-counts - counters of sources at sites: messages taken from ceilings, results of a day, and rests
 *
 * Strangers choose the names of sites: a source has at most 5,000 sites a window; those beyond share the site `other`.
 * Keys end by themselves: hours after three hours, days after three days, rests two days after the last one.
 *
 * Keys: `egress-sent:<window>`, `egress-day:<day>`, `egress-rests`, on shard 0. They belong to no actor: a message is
 * counted when it is sent, whichever shard it is on.
 *
 * Spec egress.ceiling, egress.rest
 */

import { packRest, placeField, type StoredRest } from '../state/egress.ts'
import { EGRESS_SHARD, egressDayKey, egressRestsKey, egressSentKey } from '../state/keys.ts'
import type { Nodes } from './nodes.ts'

const SITES_MAX = 5_000
const RESTS_MAX = 1_000
const OTHER = 'other'
const HOUR_SECONDS = 3 * 3_600
const DAY_SECONDS = 3 * 86_400
const DAY_NAME_CHARS = 8

/** KEYS: the hash. ARGV: field, field of others, field with the number of sites, bound, seconds, want, ceiling. */
const TAKE = `
local field = ARGV[1]
local used = redis.call('HGET', KEYS[1], field)
if not used and tonumber(redis.call('HGET', KEYS[1], ARGV[3]) or '0') >= tonumber(ARGV[4]) then
  field = ARGV[2]
  used = redis.call('HGET', KEYS[1], field)
end
local before = tonumber(used or '0')
local grant = math.min(tonumber(ARGV[6]), tonumber(ARGV[7]) - before)
if grant <= 0 then return {0, before} end
if not used then redis.call('HINCRBY', KEYS[1], ARGV[3], 1) end
redis.call('HINCRBY', KEYS[1], field, grant)
redis.call('EXPIRE', KEYS[1], ARGV[5])
return {grant, before + grant}`

/** KEYS: the hash. ARGV: field, field of others, units. */
const GIVE = `
local field = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 and ARGV[1] or ARGV[2]
local used = tonumber(redis.call('HGET', KEYS[1], field) or '0')
if used > 0 then redis.call('HINCRBY', KEYS[1], field, -math.min(used, tonumber(ARGV[3]))) end
return 0`

/** KEYS: the hash. ARGV: bound, seconds, then field, field of others, number, in turn. */
const COUNT = `
for at = 3, #ARGV, 3 do
  local field = ARGV[at]
  if redis.call('HEXISTS', KEYS[1], field) == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[1]) then
    field = ARGV[at + 1]
  end
  redis.call('HINCRBY', KEYS[1], field, ARGV[at + 2])
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 0`

/** KEYS: the hash. ARGV: field, rest, bound, now. Those that are over leave it when it is full. */
const REST = `
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  local all = redis.call('HGETALL', KEYS[1])
  for at = 1, #all, 2 do
    local untilMs = tonumber(string.match(all[at + 1], '^%[(%d+)') or '0')
    if untilMs <= tonumber(ARGV[4]) then redis.call('HDEL', KEYS[1], all[at]) end
  end
  if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], 172800)
return 1`

/** Results of a source at a site. */
export interface SourceResult {
  readonly result: string
  readonly source: string
  readonly site: string
  readonly attempts: number
}

interface Place {
  readonly window: string
  readonly source: string
  readonly site: string
}

/** Makes the counters. Their methods reject if Redis does not answer. */
export function makeEgressCounts(nodes: Nodes) {
  const node = () => nodes.nodeOf(EGRESS_SHARD)
  return {
    async take({ window, source, site, want, ceiling }: Place & { want: number; ceiling: number }) {
      const seconds = window.length > DAY_NAME_CHARS ? HOUR_SECONDS : DAY_SECONDS
      const fields = [placeField(source, site), placeField(source, OTHER), `#${source}`]
      const key = egressSentKey(window)
      const answer = await node().eval(TAKE, 1, key, ...fields, SITES_MAX, seconds, want, ceiling)
      const [granted = 0, used = 0] = answer as number[]
      return { granted, used }
    },
    async give({ window, source, site, units }: Place & { units: number }): Promise<void> {
      const fields = [placeField(source, site), placeField(source, OTHER)]
      await node().eval(GIVE, 1, egressSentKey(window), ...fields, units)
    },
    async count(day: string, results: readonly SourceResult[]): Promise<void> {
      const args = results.flatMap(({ result, source, site, attempts }) => [
        placeField(result, placeField(source, site)),
        placeField(result, placeField(source, OTHER)),
        attempts,
      ])
      await node().eval(COUNT, 1, egressDayKey(day), SITES_MAX * 4, DAY_SECONDS, ...args)
    },
    async rest(source: string, site: string, rest: StoredRest, nowMs: number): Promise<void> {
      await node().eval(REST, 1, egressRestsKey(), placeField(source, site), packRest(rest), RESTS_MAX, nowMs)
    },
    async wake(fields: readonly string[]): Promise<void> {
      if (fields.length > 0) await node().hdel(egressRestsKey(), ...fields)
    },
  }
}

export type EgressCounts = ReturnType<typeof makeEgressCounts>
