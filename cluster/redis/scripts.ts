/** scripts - every script that runs inside the store, with the name under which the store knows it. */
import { createHash } from 'node:crypto'
import { COMMIT_SCRIPT, FREEING_COMMIT_SCRIPT } from './commit-script.ts'
import {
  ENQUEUE_SCRIPT,
  ENTRIES_SCRIPT,
  OUTCOME_SCRIPT,
  REPLIES_SCRIPT,
  SHARD_ENQUEUE_SCRIPT,
  SHARD_OUTCOME_SCRIPT,
} from './mailbox-script.ts'
import { ACQUIRE_SCRIPT, HEARTBEAT_SCRIPT, READ_SCRIPT, RELEASE_SCRIPT, RETIRE_SCRIPT } from './read-script.ts'

export interface Script {
  readonly text: string
  /** SHA-1 of the text, as EVALSHA wants it. */
  readonly sha: string
}

export const COMMIT = scriptOf(COMMIT_SCRIPT)
export const FREEING_COMMIT = scriptOf(FREEING_COMMIT_SCRIPT)
export const READ = scriptOf(READ_SCRIPT)
export const ACQUIRE = scriptOf(ACQUIRE_SCRIPT)
export const RELEASE = scriptOf(RELEASE_SCRIPT)
export const HEARTBEAT = scriptOf(HEARTBEAT_SCRIPT)
export const RETIRE = scriptOf(RETIRE_SCRIPT)
export const ENQUEUE = scriptOf(ENQUEUE_SCRIPT)
export const OUTCOME = scriptOf(OUTCOME_SCRIPT)
export const SHARD_ENQUEUE = scriptOf(SHARD_ENQUEUE_SCRIPT)
export const SHARD_OUTCOME = scriptOf(SHARD_OUTCOME_SCRIPT)
export const ENTRIES = scriptOf(ENTRIES_SCRIPT)
export const REPLIES = scriptOf(REPLIES_SCRIPT)

/** All of them, for loading after each connect. */
export const SCRIPTS: readonly Script[] = [
  COMMIT,
  FREEING_COMMIT,
  READ,
  ACQUIRE,
  RELEASE,
  HEARTBEAT,
  RETIRE,
  ENQUEUE,
  OUTCOME,
  SHARD_ENQUEUE,
  SHARD_OUTCOME,
  ENTRIES,
  REPLIES,
]

function scriptOf(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}
