/**
 * read-script - the scripts around the commit: reads in one step, taking and giving back, heartbeat.
 *
 * Guarantees that a read sees one moment of its shard; taking a shard changes nothing unless the expected token is
 * stored and no move is in progress; the state found by the next owner is kept under the old token for an hour.
 */
import { MOVE_PREFIX } from '../store.ts'

/** How long the state left by a previous owner can be requested. */
const FENCED_MS = 3_600_000

const NOW = `
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
`

/** Fields of `meta` in the order in which ACQUIRE answers them. */
export const META_FIELDS = ['owner', 'tok', 'seq', 'last', 'lid', 'cur', 'out', 'tries', 'freed'] as const

/** Fields of a hash, or the whole hash in its own list if it has at most as many as the first argument. */
export const WHOLE = 'WHOLE'

/**
 * KEYS: keys to read. ARGV: commands as a packed list, each `[command, number of its key, argument, ...]`. Answers
 * with one JSON text of all replies (nil is `false`, an empty list is `{}`), which the client parses in half the time
 * of a list.
 */
export const READ_SCRIPT = `#!lua flags=no-writes
local call, unpack_, keys = redis.call, unpack, KEYS
local facts = cmsgpack.unpack(ARGV[1])
for i = 1, #facts do
  local fact = facts[i]
  local key = keys[fact[2]]
  fact[2] = key
  if fact[1] ~= '${WHOLE}' then facts[i] = call(unpack_(fact))
  elseif call('HLEN', key) <= tonumber(fact[3]) then facts[i] = { call('HGETALL', key) }
  else facts[i] = call('HMGET', key, unpack_(fact, 4)) end
end
return cjson.encode(facts)
`

/**
 * KEYS: meta, fenced of the seen token. ARGV: seen token, new token, worker. Answers 'ok' or 'changed', then
 * META_FIELDS.
 */
export const ACQUIRE_SCRIPT = `#!lua flags=allow-oom
local meta = redis.call('HMGET', KEYS[1], ${META_FIELDS.map((field) => `'${field}'`).join(', ')})
for i = 1, ${META_FIELDS.length} do meta[i] = meta[i] or '' end
local isMoved = string.sub(meta[1], 1, ${MOVE_PREFIX.length}) == '${MOVE_PREFIX}'
if meta[2] ~= ARGV[1] or isMoved then return { 'changed', unpack(meta) } end
${NOW}
if meta[3] == '' then meta[3] = '0' end
if ARGV[1] ~= '' then redis.call('SET', KEYS[2], meta[3] .. ' ' .. meta[4], 'PX', ${FENCED_MS}) end
meta[1], meta[2], meta[8] = ARGV[3], ARGV[2], string.format('%.0f', (tonumber(meta[8]) or 0) + 1)
redis.call('HSET', KEYS[1], 'owner', meta[1], 'tok', meta[2], 'seq', meta[3], 'tries', meta[8],
  'since', string.format('%.0f', ms))
return { 'ok', unpack(meta) }
`

/** KEYS: meta. ARGV: token, channel of workers that take shards, number of this one. */
export const RELEASE_SCRIPT = `#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'tok') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'owner', '')
redis.pcall('PUBLISH', ARGV[2], ARGV[3])
return 1
`

/**
 * KEYS: workers. ARGV: worker, its record, channel of workers that take shards, '1' if it leaves. Answers the clock and
 * all records.
 */
export const HEARTBEAT_SCRIPT = `#!lua flags=allow-oom
if redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) == 1 or ARGV[4] == '1' then redis.pcall('PUBLISH', ARGV[3], '') end
${NOW}
return { ms, redis.call('HGETALL', KEYS[1]) }
`

/**
 * KEYS: workers. ARGV: worker, optionally the record that the caller saw. A record that has changed since is kept,
 * because a frozen worker has resumed.
 */
export const RETIRE_SCRIPT = `#!lua flags=allow-oom
if ARGV[2] and redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
`
