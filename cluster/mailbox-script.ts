/**
 * mailbox-script - the scripts of the way between two processes: commands in, what they say, replies out.
 *
 * Guarantees: what a command says is there as long as its entry is unread and it may still come true; a mailbox takes
 * commands in the order in which they are given until it is full; who reads a reply learns the store's clock with it.
 */

/** How long what a mailbox command says is kept for its reader. */
export const STAGED_MS = 60_000
/** Outcomes have no deadline: whoever takes the shard within a week finds them. */
export const OUTCOME_KEPT_MS = 7 * 86_400_000
/** Arguments before those of the commands. */
const HEAD_ARGS = 3
/** Arguments of one command: cmdId, name, reply address, deadline, what it says. */
const COMMAND_ARGS = 5

/**
 * KEYS: stream, then `staged` of each command. ARGV: bell, entriesMax (0: no bound), life of what they say, then each
 * command's arguments. Answers how many of them were taken, from the first on.
 */
const ENQUEUE_STEPS = `
local call, stream, n, life = redis.call, KEYS[1], #KEYS - 1, ARGV[3]
local most = tonumber(ARGV[2])
if most > 0 then n = math.min(n, math.max(0, most - call('XLEN', stream))) end
for i = 1, n do
  local at = (i - 1) * ${COMMAND_ARGS} + ${HEAD_ARGS}
  call('SET', KEYS[i + 1], ARGV[at + 5], 'PX', life)
  call('XADD', stream, '*', 'cmd', ARGV[at + 1], 'name', ARGV[at + 2], 'to', ARGV[at + 3], 'deadline', ARGV[at + 4])
end
if n > 0 then call('PUBLISH', ARGV[1], '1') end
return n
`

/** Commands into a mailbox: refused by a full store before anything runs. */
export const ENQUEUE_SCRIPT = `#!lua flags=\n${ENQUEUE_STEPS}`
/** Outcomes to the next owner: they free, and run in a full store too. */
export const OUTCOME_SCRIPT = `#!lua flags=allow-oom\n${ENQUEUE_STEPS}`

/**
 * KEYS: stream. ARGV: first id as XRANGE takes it, most entries, how the keys of what they say begin. Answers of each
 * entry: id, cmdId, name, reply address, deadline, what it says (nothing when it is gone).
 */
export const ENTRIES_SCRIPT = `#!lua flags=no-writes
local entries = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])
for i = 1, #entries do
  local f = entries[i][2]
  entries[i] = { entries[i][1], f[2], f[4], f[6], f[8], redis.call('GET', ARGV[3] .. f[2]) }
end
return entries
`

/** KEYS: replies. ARGV: cmdId. Answers the reply and the clock. */
export const REPLY_SCRIPT = `#!lua flags=no-writes
local time = redis.call('TIME')
return { redis.call('HGET', KEYS[1], ARGV[1]), time[1] * 1000 + math.floor(time[2] / 1000) }
`
