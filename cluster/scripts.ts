/**
 * scripts - what the store runs for us, as Lua.
 *
 * COMMIT exists twice: commits that accept are refused by a full store before anything runs, those that only finish or
 * free are not (`allow-oom`). READ is declared as without writes.
 */

/**
 * KEYS: meta, journal, every other key. ARGV: tok seq commitId nowMs deadlineMs lid top first cursor out note ops,
 * then the bytes. An op is {place of its key, write, argument...}; the value {n} of a SET stands for bytes n.
 */
const COMMIT_BODY = `
local meta = redis.call('HMGET', KEYS[1], 'tok', 'seq', 'last', 'top')
if meta[1] ~= ARGV[1] then return {'FENCED'} end
local seq = meta[2] or '0'
if seq ~= ARGV[2] then
  if meta[3] == ARGV[3] then return {'DUP'} end
  return {'CONFLICT', seq}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = tonumber(ARGV[5])
if deadline > 0 and now > deadline then return {'LATE', string.format('%.0f', now)} end
local off = now - tonumber(ARGV[4])
if off > 5000 or off < -5000 then return {'CLOCK', string.format('%.0f', now)} end
if ARGV[8] ~= '' and meta[4] and ARGV[8] <= meta[4] then return {'BADOP', 'new ids must lie above the last'} end
local ops = cmsgpack.unpack(ARGV[12])
local made_here = {}
local n = #ops
for i = 1, n do
  local op = ops[i]
  local at = op[1]
  if not KEYS[at] then return {'BADOP', 'no such key'} end
  if op[2] == 'PEXPIREAT' then
    if not made_here[at] and redis.call('EXISTS', KEYS[at]) == 0 then return {'MISSING', KEYS[at]} end
  elseif op[2] == 'UNLINK' then made_here[at] = nil
  elseif op[2] == 'HSET' or op[2] == 'XADD' then made_here[at] = true
  elseif op[2] == 'SET' then
    made_here[at] = true
    if type(op[3]) == 'table' then op[3] = ARGV[12 + op[3][1]] end
    if not op[3] then return {'BADOP', 'no such bytes'} end
  end
end
local made = string.format('%.0f', tonumber(seq) + 1)
redis.call('XADD', KEYS[2], 'MAXLEN', '~', 256, made .. '-0', 'c', ARGV[3], 'n', ARGV[11])
for i = 1, n do
  local op = ops[i]
  redis.call(op[2], KEYS[op[1]], unpack(op, 3))
end
local set = {'HSET', KEYS[1], 'seq', made, 'last', ARGV[3], 'now', ARGV[4]}
if ARGV[6] ~= '' then set[#set + 1] = 'lid'; set[#set + 1] = ARGV[6]; set[#set + 1] = 'top'; set[#set + 1] = ARGV[7] end
if ARGV[9] ~= '' then set[#set + 1] = 'cur'; set[#set + 1] = ARGV[9] end
if ARGV[10] ~= '' then set[#set + 1] = 'out'; set[#set + 1] = ARGV[10] end
redis.call(unpack(set))
return {'OK'}
`

export const COMMIT = `#!lua flags=\n${COMMIT_BODY}`
export const COMMIT_FREES = `#!lua flags=allow-oom\n${COMMIT_BODY}`

/** KEYS: every key. ARGV: facts in MessagePack, each {kind, place of its key, argument...}. One answer per fact. */
export const READ = `#!lua flags=no-writes
local facts = cmsgpack.unpack(ARGV[1])
local answers = {}
for i = 1, #facts do
  local fact = facts[i]
  local kind, key = fact[1], KEYS[fact[2]]
  if kind == 'f' then answers[i] = redis.call('HMGET', key, unpack(fact, 3))
  elseif kind == 'h' then answers[i] = redis.call('HGETALL', key)
  elseif kind == 'r' then answers[i] = redis.call('XRANGE', key, fact[3], fact[4], 'COUNT', fact[5])
  elseif kind == 'l' then answers[i] = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)
  elseif kind == 's' then answers[i] = redis.call('ZRANGEBYSCORE', key, fact[3], fact[4], 'WITHSCORES', 'LIMIT', 0, fact[5])
  elseif kind == 'c' then answers[i] = redis.call('ZSCORE', key, fact[3])
  else answers[i] = redis.call('GET', key) end
end
return answers
`

/** KEYS: meta, fenced key of the token seen. ARGV: token seen, new token, worker. Answers 1 or 0, then meta. */
export const ACQUIRE = `#!lua flags=allow-oom
local tok = redis.call('HGET', KEYS[1], 'tok') or ''
local taken = 0
if tok == ARGV[1] then
  taken = 1
  if tok ~= '' then
    local found = redis.call('HMGET', KEYS[1], 'seq', 'last')
    redis.call('SET', KEYS[2], (found[1] or '0') .. ' ' .. (found[2] or ''), 'PX', 3600000)
  end
  redis.call('HSET', KEYS[1], 'owner', ARGV[3], 'tok', ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'tries', 1)
end
return {taken, redis.call('HMGET', KEYS[1], 'owner', 'tok', 'seq', 'last', 'lid', 'cur', 'out', 'tries')}
`

/** KEYS: meta. ARGV: token. */
export const RELEASE = `#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'tok') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'owner', '')
return 1
`

/** KEYS: workers. ARGV: worker, record. Answers the clock and all records. */
export const HEARTBEAT = `#!lua flags=allow-oom
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local time = redis.call('TIME')
return {string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), redis.call('HGETALL', KEYS[1])}
`

/** KEYS: mailbox, staged. ARGV: entries at most, cmdId, name, reply address, deadline, body, doorbell. */
export const ENQUEUE = `#!lua flags=
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return 'BUSY' end
redis.call('SET', KEYS[2], ARGV[6], 'PX', 60000)
redis.call('XADD', KEYS[1], '*', 'cmd', ARGV[2], 'name', ARGV[3], 'reply', ARGV[4], 'deadline', ARGV[5])
redis.call('PUBLISH', ARGV[7], '')
return 'OK'
`

/** KEYS: replies. ARGV: cmdId. */
export const REPLY = `#!lua flags=no-writes
local time = redis.call('TIME')
return {redis.call('HGET', KEYS[1], ARGV[1]), string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}
`
