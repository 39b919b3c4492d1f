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

export const COMMIT = makeScript(COMMIT_SCRIPT)
export const FREEING_COMMIT = makeScript(FREEING_COMMIT_SCRIPT)
export const READ = makeScript(READ_SCRIPT)
export const ACQUIRE = makeScript(ACQUIRE_SCRIPT)
export const RELEASE = makeScript(RELEASE_SCRIPT)
export const HEARTBEAT = makeScript(HEARTBEAT_SCRIPT)
export const RETIRE = makeScript(RETIRE_SCRIPT)
export const ENQUEUE = makeScript(ENQUEUE_SCRIPT)
export const OUTCOME = makeScript(OUTCOME_SCRIPT)
export const SHARD_ENQUEUE = makeScript(SHARD_ENQUEUE_SCRIPT)
export const SHARD_OUTCOME = makeScript(SHARD_OUTCOME_SCRIPT)
export const ENTRIES = makeScript(ENTRIES_SCRIPT)
export const REPLIES = makeScript(REPLIES_SCRIPT)

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

function makeScript(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}
