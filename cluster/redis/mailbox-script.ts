/**
 * mailbox-script - the scripts of the exchange between two processes: parcels and outcomes in, their content, replies
 * out.
 *
 * Guarantees that the content of a parcel exists as long as its entry is unread and can still be executed; a mailbox
 * accepts parcels in the given order until it is full; an entry's id is above the mailbox's cursor, even if the clock
 * goes back or a restart has restored an old stream; a reader of a reply gets the store's clock with it.
 *
 * Parcels are not written to the store's file: if a restart empties a mailbox, the caller gets a no by its deadline,
 * and the file has enough to do with accepted data. Outcomes and replies are written.
 */
import { bellChannel, parcelChannel } from '../keyspace.ts'
import { ENTRIES_BYTES_MAX, PARCEL_COMMANDS_MAX } from '../mailbox/parcel.ts'
import { MOVE_PREFIX } from '../store.ts'

/** How long the content of a parcel is kept for its reader. */
export const STAGED_MS = 60_000
/** Outcomes have no deadline, and the next owner finds them within a week. */
export const OUTCOME_KEPT_MS = 7 * 86_400_000
/** A parcel of more bytes does not come before its bell, but is read. */
export const BELL_BYTES_MAX = 65_536
/** Arguments before those of the parcels. */
export const HEAD_ARGS = 2
/** Arguments of one parcel: shard, id, commands, content. */
export const PARCEL_ARGS = 4
/** Keys of one parcel: meta, mailbox, staged. */
export const PARCEL_KEYS = 3

/** How an owner is notified: on a channel by its name; in a cluster in the slot of its shard. */
interface Ways {
  /** Lua that publishes a parcel: `said` to `owner`, whose shard has `meta`. */
  readonly parcel: string
  /** Lua that publishes a text: `text` to `owner`, whose shard has `meta`. */
  readonly bell: string
}

const BY_OWNER: Ways = {
  parcel: `redis.pcall('PUBLISH', '${parcelChannel('')}' .. owner, said)`,
  bell: `redis.pcall('PUBLISH', '${bellChannel('')}' .. owner, text)`,
}

const BY_SHARD: Ways = {
  parcel: `redis.pcall('SPUBLISH', string.sub(meta, 1, -5) .. 'parcel', said)`,
  bell: `redis.pcall('SPUBLISH', string.sub(meta, 1, -5) .. 'bell', text)`,
}

const ringOf = ({ bell }: Ways): string => `
local function ring(owner, text, meta)
  if owner and owner ~= '' then ${bell} end
end
`

/**
 * KEYS and ARGV of each parcel as above; ARGV before them: worker that receives the replies, most commands of a
 * mailbox. Answers for each parcel 1 when it was taken, otherwise 0, as while its shard is moved: it might not get
 * there. Each entry has the number of its commands (`n`) and the sum of all up to it (`sum`), so that those that wait
 * are the difference of two entries.
 */
const enqueueScript = (ways: Ways): string => `#!lua flags=
redis.set_repl(redis.REPL_NONE)
${ringOf(ways)}
local call, pcall_, match, to, most = redis.call, redis.pcall, string.match, ARGV[1], tonumber(ARGV[2])
local time = call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local taken, owners, bells = {}, {}, {}

local function over(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

local function numberIn(entry, place)
  return tonumber(entry[2][place] or '') or 0
end

-- Commands that wait in a mailbox with this last entry. A few parcels are never too many.
local function waitingIn(mailbox, last)
  if call('XLEN', mailbox) * ${PARCEL_COMMANDS_MAX} < most then return 0 end
  local first = call('XRANGE', mailbox, '-', '+', 'COUNT', 1)[1]
  return numberIn(last, 8) - numberIn(first, 8) + numberIn(first, 6)
end

for i = 1, #KEYS / ${PARCEL_KEYS} do
  local meta, mailbox, staged = KEYS[i * 3 - 2], KEYS[i * 3 - 1], KEYS[i * 3]
  local at = i * ${PARCEL_ARGS} - ${PARCEL_ARGS - HEAD_ARGS}
  local shard, parcel, said = ARGV[at + 1], ARGV[at + 2], ARGV[at + 4]
  local last = call('XREVRANGE', mailbox, '+', '-', 'COUNT', 1)[1]
  local known = call('HMGET', meta, 'owner', 'cur')
  local isMoved = known[1] and string.sub(known[1], 1, ${MOVE_PREFIX.length}) == '${MOVE_PREFIX}'
  taken[i] = 0
  if not isMoved and (not last or waitingIn(mailbox, last) < most) then
    local ms, low = match(known[2] or '', '^(%d+)%-(%d+)')
    if not ms then ms, low = '0', '0' end
    if last then
      local lastMs, lastLow = match(last[1], '^(%d+)%-(%d+)$')
      if over(lastMs, ms) or (lastMs == ms and over(lastLow, low)) then ms, low = lastMs, lastLow end
    end
    local before, id = ms .. '-' .. low, string.format('%.0f-0', nowMs)
    if nowMs <= tonumber(ms) then id = string.format('%s-%.0f', ms, low + 1) end
    call('SET', staged, said, 'PX', ${STAGED_MS})
    local n = ARGV[at + 3]
    local sum = string.format('%.0f', n + (last and numberIn(last, 8) or 0))
    local added = pcall_('XADD', mailbox, id, 'parcel', parcel, 'to', to, 'n', n, 'sum', sum)
    -- The stream is empty, and has given out a higher id that nobody has read.
    if added.err then id = call('XADD', mailbox, '*', 'parcel', parcel, 'to', to, 'n', n, 'sum', sum) end
    taken[i] = 1
    local owner = known[1]
    if owner and owner ~= '' then
      local bell = bells[owner]
      if not bell then
        bell = {}
        bells[owner] = bell
        owners[#owners + 1] = owner
      end
      if #said > ${BELL_BYTES_MAX} then bell[#bell + 1] = shard
      else
        -- By itself: Lua reads every text that it makes byte by byte, and joining makes several.
        ${ways.parcel}
        bell[#bell + 1] = table.concat({ shard, id, before, parcel, to }, ' ')
      end
    end
  end
end
for i = 1, #owners do ring(owners[i], table.concat(bells[owners[i]], '\\n'), KEYS[1]) end
return taken
`

/**
 * KEYS: meta, outcomes, staged. ARGV: shard, cmdId, content. It frees: it runs in a full store too. Answers 0 while the
 * shard is moved, and has written nothing then: copied keys must not change.
 */
const outcomeScript = (ways: Ways): string => `#!lua flags=allow-oom
${ringOf(ways)}
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and string.sub(owner, 1, ${MOVE_PREFIX.length}) == '${MOVE_PREFIX}' then return 0 end
redis.call('SET', KEYS[3], ARGV[3], 'PX', ${OUTCOME_KEPT_MS})
redis.call('XADD', KEYS[2], '*', 'cmd', ARGV[2], 'to', '')
ring(owner, ARGV[1], KEYS[1])
return 1
`

export const ENQUEUE_SCRIPT = enqueueScript(BY_OWNER)
export const OUTCOME_SCRIPT = outcomeScript(BY_OWNER)
/** The same in a cluster, with one parcel per call. */
export const SHARD_ENQUEUE_SCRIPT = enqueueScript(BY_SHARD)
export const SHARD_OUTCOME_SCRIPT = outcomeScript(BY_SHARD)

/**
 * KEYS: stream. ARGV: first id as XRANGE takes it, most entries, prefix of the keys of their content. Answers of each
 * entry: id, name of its content, reply address, content (nothing if it has expired).
 */
export const ENTRIES_SCRIPT = `#!lua flags=no-writes
local entries, bytes = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2]), 0
local read = {}
for i = 1, #entries do
  local f = entries[i][2]
  local said = redis.pcall('GET', ARGV[3] .. f[2])
  if type(said) == 'table' and not string.find(said.err, 'WRONGTYPE', 1, true) then return said end
  if type(said) ~= 'string' then said = false end
  read[i] = { entries[i][1], f[2], f[4] or '', said }
  if said then bytes = bytes + #said end
  if bytes >= ${ENTRIES_BYTES_MAX} then break end
end
return read
`

/**
 * KEYS: replies of each parcel. ARGV: the parcels. Answers with the clock, then for each parcel its fields of replies
 * from place 0 on, each of which begins with its number of replies.
 */
export const REPLIES_SCRIPT = `#!lua flags=no-writes
local time = redis.call('TIME')
local found = { time[1] * 1000 + math.floor(time[2] / 1000) }
for i = 1, #KEYS do
  local fields, place = {}, 0
  while place do
    local value = redis.call('HGET', KEYS[i], ARGV[i] .. '/' .. place)
    local count = value and tonumber(string.match(value, '^%d+'))
    if count then fields[#fields + 1] = value end
    place = count and count > 0 and place + count
  end
  found[i + 1] = fields
end
return found
`
