/**
 * remote-ask - a command to a shard that another process owns: into its mailbox, and the reply out of the store.
 *
 * Guarantees: an enqueue whose reply was lost is never sent again; `unavailable` is said only when the store itself says
 * that the deadline has passed and there is no reply, because no commit can make the command true after that.
 */
import type { Command } from './behaviour.ts'
import type { Clock } from './clock.ts'
import { msOfCmdId } from './cmd-id.ts'
import type { Store } from './store.ts'
import type { AskResult } from './work.ts'

const ENTRIES_MAX = 2_000
const SLICE_MS = 2_000
const FIRST_LOOK_MS = 10
const LOOK_MAX_MS = 500
/** So long after the deadline a reply is surely still kept; later its absence says nothing. */
const REPLY_KEPT_MS = 30_000
/** No answer is looked for after this. */
const GIVE_UP_MS = 34_000

interface Remote {
  readonly store: Store
  readonly clock: Clock
  readonly worker: string
}

/** Sends `command` to the owner of `shard` and waits for its reply. Never rejects. */
export async function askRemote(
  { store, clock, worker }: Remote,
  { shard, command, deadlineMs }: { shard: number; command: Command; deadlineMs: number },
): Promise<AskResult> {
  const { cmdId, name } = command
  const body = JSON.stringify(command.body)
  const sent = await store.enqueue({ shard, cmdId, name, replyTo: worker, deadlineMs, body, entriesMax: ENTRIES_MAX })
  if (sent === 'busy' || sent === 'unsent') return { kind: 'unavailable' }
  const slice = Math.floor(msOfCmdId(cmdId) / SLICE_MS)
  const startedAtMs = clock.monotonicMs()
  for (
    let wait = FIRST_LOOK_MS;
    clock.monotonicMs() - startedAtMs < GIVE_UP_MS;
    wait = Math.min(wait * 2, LOOK_MAX_MS)
  ) {
    await new Promise<void>((resolve) => clock.after(wait, resolve))
    const found = await store.reply({ shard, cmdId, slice })
    if (found === null) continue
    if (found.reply !== null) return JSON.parse(found.reply) as AskResult
    if (found.nowMs > deadlineMs + REPLY_KEPT_MS) return { kind: 'silent' }
    if (found.nowMs > deadlineMs) return { kind: 'unavailable' }
  }
  return { kind: 'silent' }
}
