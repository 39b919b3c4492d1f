/**
 * keyspace - the names of the runtime's own keys. Every key of a shard carries the hash tag `{s017}`.
 */

export const CONF_KEY = '{cl}:conf'
export const WORKERS_KEY = '{cl}:workers'
/** String, one minute: a write that proves that the store syncs acknowledged writes. */
export const PROOF_KEY = '{cl}:proof'
/** String, ten seconds: the process that is moving shards between the primaries of a cluster. */
export const MOVE_KEY = '{cl}:move'
/** Stream: replies of commits for a worker, one line for each parcel (`parcel-replies.ts`). */
export const toldKey = (worker: string): string => `{cl}:told:${worker}`

/** The same in a cluster: a stream in a slot of the primary that a parcel goes to, named by any shard there. */
export const toldKeyAt = (shard: number, worker: string): string => `${shardTag(shard)}:told:${worker}`
/** The stream that receives the replies. A parcel names a worker, or the stream itself. */
export const toldStream = (to: string): string => (to.startsWith('{') ? to : toldKey(to))

/** Channel: number of a released shard; empty for a worker that has come or leaves. */
export const RELEASED_CHANNEL = '{cl}:released'
/** Channel: parcels for mailboxes of a worker's shards, each before the bell that names it (`bell.ts`). */
export const parcelChannel = (worker: string): string => `{cl}:parcel:${worker}`
/** Channel: something has come into mailboxes or outcomes of a worker's shards (`bell.ts`). */
export const bellChannel = (worker: string): string => `{cl}:bell:${worker}`

/** Channels of one shard in a cluster: its parcels, each before the bell that names it. */
export const shardParcelChannel = (shard: number): string => `${shardTag(shard)}:parcel`
/** Channel of one shard in a cluster: something has come into its mailbox or outcomes. */
export const shardBellChannel = (shard: number): string => `${shardTag(shard)}:bell`

/**
 * The lane of timers: work that the runtime itself schedules. Its items are `<timer>:<rest>`; the runtime performs
 * them.
 */
export const TIMERS_LANE = 'timers'

/** Hash tag of a shard, with braces: `{s017}`. */
export function shardTag(shard: number): string {
  return TAGS[shard] ?? `{s${shard.toString().padStart(3, '0')}}`
}

const TAGS: readonly string[] = Array.from({ length: 256 }, (_, shard) => `{s${shard.toString().padStart(3, '0')}}`)

/** A name that every commit of a shard needs: made once, so that the tables that it is looked up in know it at once. */
function ofShard(name: string): (shard: number) => string {
  const names: (string | undefined)[] = []
  return (shard) => (names[shard] ??= `${shardTag(shard)}:${name}`)
}

/** Hash: owner tok seq last lid now cur out tries. */
export const metaKey = ofShard('meta')
/** Stream: one entry per commit, id `<seq>-0`. */
export const journalKey = ofShard('journal')
/** Stream: parcels of commands from other processes. */
export const mailboxKey = (shard: number): string => `${shardTag(shard)}:mailbox`
/** String: the content of a parcel, or of the command of an outcome. */
export const stagedKey = (shard: number, id: string): string => `${shardTag(shard)}:staged:${id}`
/** Stream: outcomes from a process that no longer owns the shard. */
export const outcomesKey = (shard: number): string => `${shardTag(shard)}:outcomes`
/** Either of the two. */
export const inboxKey = (shard: number, of: 'mailbox' | 'outcomes'): string => `${shardTag(shard)}:${of}`
/** Hash: item -> JSON [worker, lane, attempt, untilMs, claims without an outcome]. */
export const claimsKey = ofShard('claims')
/** Zset: lane -> a lower bound of its earliest due time. */
export const dueKey = ofShard('due')
/** Zset: item -> due time, ms. */
export const laneKey = (shard: number, lane: string): string => `${shardTag(shard)}:due:${lane}`
/** Hash: owner -> its periods, absolute values as JSON. */
export const countersKey = ofShard('counters')
/**
 * Hash, two minutes: `<parcel>/<place>` -> replies to its commands from there on; a key per two seconds of the parcels'
 * time.
 */
export const repliesKey = (shard: number, slice: number): string => `${shardTag(shard)}:replies:${slice}`
/** String, one hour: `<seq> <last commitId>` that the next owner found. */
export const fencedKey = (shard: number, token: string): string => `${shardTag(shard)}:fenced:${token}`
/** Stream: commands and items that could not be performed, without their content. */
export const poisonKey = (shard: number): string => `${shardTag(shard)}:poison`
/** Zset, two days: commands of a UTC day that a behaviour could not bear, whose words are kept -> until when. */
export const unborneKey = (shard: number, day: number): string => `${shardTag(shard)}:unborne:${day}`
/**
 * String: only while a shard is being moved here. Until the node has the slot, its other keys are a copy.
 */
export const copyKey = (shard: number): string => `${shardTag(shard)}:copy`
/** Stream: an entity, each entry `ev st v by`. */
export const entityKey = (shard: number, kind: string, id: string): string => `${shardTag(shard)}:${kind}:${id}`
/** Channel of signals about a topic. */
export const topicName = (topic: string): string => `{cl}:signal:${topic}`
