/**
 * commit-script - the one script that writes: checks the token and every op, then writes all or nothing.
 *
 * States: a commit is either refused as a whole (FENCED, DUP, CONFLICT, LATE, CLOCK, TORN, BADOP, MISSING), without
 * any write, or done.
 *
 * Guarantees: a script has no rollback, so the first pass checks everything that could make a write of the second one
 * fail: the command, its arguments, the type of its key, and the order of stream ids. The journal entry is written
 * first and `meta` last: if both have the same number, everything between them was written too.
 *
 * Keys: KEYS[1] meta, KEYS[2] journal, then every key that an op names. Arguments: token, seq, commitId, nowMs,
 * deadlineMs, firstEntryId, lid, top (lid as a sortable entry id), cursor, outcomes cursor, note, ops, the key types
 * that the owner is sure of ('' or `j`, then a letter for each key: h z s), `p` for plain. Ops are MessagePack: a list
 * of lists `[write, number of the key, argument, ...]`, every one of which is looked at; or, plain (`plain-ops.ts`),
 * one list: how many looks there are and how many large values, three values for each look (kind, number of the key,
 * first id), for each op the number of its values and these, and for each large value, which is its own argument after
 * the `p`, its place in the list. Then the sender has looked at all except the keys in the looks. Last of all, in
 * pairs, streams of workers and the replies for each. These are in other slots, at this node of a cluster.
 *
 * The replies are published last, by a completed commit. They go to a stream that the store's file does not need, and
 * the worker's `XREAD` is answered like any command, after the file has been written. The stream is bounded in case a
 * worker does not read: it keeps about `TOLD_ENTRIES`, and ends `TOLD_KEPT_MS` after its last read.
 */

import { OP_ARGS_MAX } from '../facts/merge.ts'
import { CLOCK_OFF_MS } from '../store.ts'
/** An owner that holds its shard and commits for this long has survived: `tries` restarts. */
export const TRIES_KEPT_MS = 60_000
/** About this many entries stay in the journal. */
export const JOURNAL_ENTRIES = 256
/**
 * About this many commits can publish for a worker before it has read the first one: half a second of a busy worker,
 * which then polls.
 */
export const TOLD_ENTRIES = 256
/** Replies are kept for this long after a worker's last read. */
export const TOLD_KEPT_MS = 60_000

const CHECKS = `
local call, pcall_, find, match, unpack_ = redis.call, redis.pcall, string.find, string.match, unpack
local kinds, there, lastMs, lastLow = {}, {}, {}, {}
local parsed, parsedMs, parsedLow
local byte, SURE = string.byte, { hash = 104, sorted = 122, stream = 115 }

local function over(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

-- Takes an entry id apart, into parsedMs and parsedLow; false unless it is one in its shortest form.
local function parse(id)
  if id == parsed then return true end
  local ms, low = match(id, '^(%d+)%-(%d+)$')
  if not ms or #ms > 15 or #low > 20 or find(id, '^0%d') or find(id, '-0%d') then return false end
  if #low == 20 and low > '18446744073709551615' then return false end
  parsed, parsedMs, parsedLow = id, ms, low
  return true
end

-- Learns what a key is, once: false when it is of another type than the ops need. What the owner is sure of is believed.
local function learn(kind, k, key)
  local known = kinds[k]
  kinds[k] = kind
  if not known and byte(ARGV[13], k - 1) == SURE[kind] then
    lastMs[k], lastLow[k] = '0', '0'
    return true
  end
  if known == 'none' then
    there[k], lastMs[k], lastLow[k] = false, '0', '0'
    return true
  end
  if known then return false end
  if kind ~= 'stream' then
    local size = pcall_(kind == 'hash' and 'HLEN' or 'ZCARD', key)
    there[k] = size ~= 0
    return type(size) == 'number'
  end
  local top = pcall_('XREVRANGE', key, '+', '-', 'COUNT', 1)
  if top.err then return false end
  local id = top[1] and top[1][1]
  if not id and call('EXISTS', key) == 1 then
    local info = call('XINFO', 'STREAM', key)
    for i = 1, #info, 2 do if info[i] == 'last-generated-id' then id = info[i + 1] end end
  end
  there[k] = id ~= nil
  lastMs[k], lastLow[k] = match(id or '0-0', '^(%d+)%-(%d+)$')
  return true
end

-- What the store says against a plain commit; nil when nothing does. Looks are at 3 to last.
local function against(flat, last)
  for i = 3, last, 3 do
    local kind, k, id = flat[i], flat[i + 1], flat[i + 2]
    local key = KEYS[k]
    if kind == 'there' then
      if call('EXISTS', key) == 0 then return { 'MISSING', key } end
    elseif kind == 'stream' and id == '' then
      local type = call('TYPE', key).ok
      if type ~= 'stream' and type ~= 'none' then return { 'BADOP', 'stream type' } end
    elseif not learn(kind, k, key) then return { 'BADOP', kind .. ' type' }
    elseif id ~= '' then
      if not parse(id) then return { 'BADOP', 'XADD id' } end
      local above = over(parsedMs, lastMs[k]) or (parsedMs == lastMs[k] and over(parsedLow, lastLow[k]))
      if not above then return { 'BADOP', 'XADD order' } end
    end
  end
end

-- Why an op may not run; nil when it may. An op is [write, number of its key, argument, ...], n counts its arguments.
local function wrong(write, op, n, k, key)
  if write == 'HSET' then
    if n < 2 or n % 2 ~= 0 then return 'pairs' end
    if kinds[k] ~= 'hash' and not learn('hash', k, key) then return 'type' end
    there[k] = true
  elseif write == 'XADD' then
    if n < 3 or n % 2 ~= 1 then return 'pairs' end
    if not parse(op[3]) then return 'id' end
    if kinds[k] ~= 'stream' and not learn('stream', k, key) then return 'type' end
    if parsedMs == lastMs[k] then
      if not over(parsedLow, lastLow[k]) then return 'order' end
    elseif not over(parsedMs, lastMs[k]) then return 'order' end
    lastMs[k], lastLow[k], there[k] = parsedMs, parsedLow, true
  elseif write == 'ZADD' then
    local flag, from, last = op[3], 3, n + 2
    if flag == 'LT' or flag == 'XX' or flag == 'NX' or flag == 'GT' then from = 4 end
    if last <= from or (last - from) % 2 ~= 1 then return 'pairs' end
    for i = from, last, 2 do
      if #op[i] > 20 or not find(op[i], '^%-?%d+%.?%d*$') then return 'score' end
    end
    if kinds[k] ~= 'sorted' and not learn('sorted', k, key) then return 'type' end
    if flag ~= 'XX' then there[k] = true end
  elseif write == 'SET' then
    if n ~= 3 or op[4] ~= 'PXAT' or #op[5] > 15 or not find(op[5], '^[1-9]%d*$') then return 'arguments' end
    if kinds[k] and kinds[k] ~= 'none' and kinds[k] ~= 'text' then return 'type' end
    kinds[k], there[k] = 'text', true
  elseif write == 'ZREM' or write == 'HDEL' then
    if n < 1 then return 'arguments' end
    local kind = write == 'ZREM' and 'sorted' or 'hash'
    if kinds[k] ~= kind and not learn(kind, k, key) then return 'type' end
  elseif write == 'PEXPIREAT' then
    if n ~= 1 or #op[3] > 15 or not find(op[3], '^[1-9]%d*$') then return 'arguments' end
    if there[k] == nil then there[k] = call('EXISTS', key) == 1 end
    if not there[k] then return 'MISSING' end
  elseif write == 'XTRIM' then
    if n ~= 2 or op[3] ~= 'MINID' then return 'arguments' end
    if not parse(op[4]) then return 'id' end
    if kinds[k] ~= 'stream' and not learn('stream', k, key) then return 'type' end
  elseif write == 'UNLINK' then
    if n ~= 0 then return 'arguments' end
    kinds[k], there[k] = 'none', false
  else return 'write' end
end
`

const STEPS = `
local metaKey, journalKey = KEYS[1], KEYS[2]
local token, commitId, nowMs, firstId = ARGV[1], ARGV[3], ARGV[4], ARGV[6]
local meta = call('HMGET', metaKey, 'tok', 'seq', 'last', 'top', 'tries', 'since')
if meta[1] ~= token then return 'FENCED' end
local seq = meta[2] or '0'
if seq ~= ARGV[2] then
  if meta[3] == commitId then return 'DUP' end
  return { 'CONFLICT', seq }
end
local time = call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[5] ~= '0' and ms > tonumber(ARGV[5]) then return { 'LATE', ms } end
if math.abs(nowMs - ms) > ${CLOCK_OFF_MS} then return { 'CLOCK', ms } end
if ARGV[13] == '' then
  local top = call('XREVRANGE', journalKey, '+', '-', 'COUNT', 1)[1]
  local topId = top and top[1] or '0-0'
  if topId ~= seq .. '-0' then return { 'TORN', 'Journal ends at ' .. topId .. ', meta at ' .. seq } end
end

if firstId ~= '' and meta[4] and meta[4] ~= '' and firstId <= meta[4] then return { 'BADOP', 'lid' } end
local keys, tag = KEYS, string.sub(metaKey, 1, -5)
local plain, ops, first, last = ARGV[14] == 'p', cmsgpack.unpack(ARGV[12]), 0, 0
if plain then
  first, last = 3 + 3 * ops[1], #ops - ops[2]
  for i = 1, ops[2] do ops[ops[last + i]] = ARGV[14 + i] end
  local refusal = against(ops, first - 1)
  if refusal then return refusal end
else for i = 1, #ops do
  local op = ops[i]
  local k = op[2]
  local key = keys[k]
  if not key or k < 3 or key == metaKey or key == journalKey or find(key, tag, 1, true) ~= 1 then return { 'BADOP', 'key' } end
  local n = #op - 2
  if n > ${OP_ARGS_MAX} then return { 'BADOP', 'count' } end
  local reason = wrong(op[1], op, n, k, key)
  if reason == 'MISSING' then return { 'MISSING', key } end
  if reason then return { 'BADOP', op[1] .. ' ' .. reason } end
end end

local nextSeq = string.format('%.0f', seq + 1)
call('XADD', journalKey, 'MAXLEN', '~', ${JOURNAL_ENTRIES}, nextSeq .. '-0', 'c', commitId, 'n', ARGV[11])
if plain then
  local i = first
  while i < last do
    local next = i + ops[i] + 1
    ops[i + 2] = keys[ops[i + 2]]
    call(unpack_(ops, i + 1, next - 1))
    i = next
  end
else for i = 1, #ops do
  local op = ops[i]
  op[2] = keys[op[2]]
  call(unpack_(op))
end end
local set = { 'HSET', metaKey, 'seq', nextSeq, 'last', commitId, 'now', nowMs }
local n = 8
if ARGV[7] ~= '' then
  set[9], set[10], set[11], set[12] = 'lid', ARGV[7], 'top', ARGV[8]
  n = 12
end
if ARGV[9] ~= '' then set[n + 1], set[n + 2] = 'cur', ARGV[9]; n = n + 2 end
if ARGV[10] ~= '' then set[n + 1], set[n + 2] = 'out', ARGV[10]; n = n + 2 end
if meta[5] ~= '0' and meta[5] and ms - (tonumber(meta[6]) or 0) >= ${TRIES_KEPT_MS} then
  set[n + 1], set[n + 2] = 'tries', '0'
end
call(unpack_(set))
local at = plain and 15 + ops[2] or 15
if ARGV[at] then
  redis.set_repl(redis.REPL_NONE)
  for i = at, #ARGV, 2 do
    if not pcall_('XADD', ARGV[i], 'NOMKSTREAM', 'MAXLEN', '~', ${TOLD_ENTRIES}, '*', 'r', ARGV[i + 1]) then
      pcall_('XADD', ARGV[i], '*', 'r', ARGV[i + 1])
      pcall_('PEXPIRE', ARGV[i], ${TOLD_KEPT_MS})
    end
  end
end
return 'OK'
`

/** Commits that accept something: refused by a full store before anything runs. */
export const COMMIT_SCRIPT = `#!lua flags=allow-cross-slot-keys\n${CHECKS}${STEPS}`
/** Commits that only finish or free: they run in a full store too. */
export const FREEING_COMMIT_SCRIPT = `#!lua flags=allow-oom,allow-cross-slot-keys\n${CHECKS}${STEPS}`
