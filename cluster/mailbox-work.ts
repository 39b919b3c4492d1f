/** mailbox-work - what another process put into a mailbox, or into outcomes, as work of a shard. */
import type { CommandType, OutcomeBody } from './behaviour.ts'
import { Fault } from './fault.ts'
import { unpackStaged } from './staged.ts'
import type { InboxEntry } from './store.ts'
import { internalWork, type Work } from './work.ts'

/** Stands for a command that nobody here knows: it is answered with a fault, so that the cursor passes it. */
const UNKNOWN: CommandType = {
  name: 'unknown',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide: () => ({ kind: 'done', reply: null }),
}

/** What came in from the mailbox at `cameAtMs` (monotonic); what it said being gone, its time counts as over. */
export function mailboxWork(
  { id, cmdId, name, replyTo, deadlineMs, body }: InboxEntry,
  { commands, cameAtMs }: { commands: ReadonlyMap<string, CommandType>; cameAtMs: number },
): Work {
  const type = commands.get(name)
  const said = body === null ? null : unpackStaged(body)
  const command = { name, cmdId, body: said?.body ?? null, blobs: said?.blobs ?? [] }
  const base = internalWork('mailbox', type ?? UNKNOWN, { command, lane: '', item: '', cameAtMs })
  const broken = type === undefined ? new Fault('Command is unknown', { name }) : null
  const late = said === null
  return { ...base, deadlineMs: late ? 1 : deadlineMs, bytes: body?.length ?? 0, entryId: id, replyTo, broken, late }
}

/** An outcome that another process handed in; null `type`: of a lane that is no more, the cursor just passes it. */
export function outcomeWork(
  { id, cmdId, body }: InboxEntry,
  { typeOf, cameAtMs }: { typeOf: (lane: string) => CommandType | undefined; cameAtMs: number },
): Work {
  const said = body === null ? null : (unpackStaged(body)?.body as OutcomeBody | null | undefined)
  const { lane, item } = said ?? { lane: '', item: '' }
  const type = typeOf(lane)
  const command = { name: type?.name ?? UNKNOWN.name, cmdId, body: said ?? null }
  const base = internalWork('outcome', type ?? PASSED, { command, lane, item, cameAtMs })
  return { ...base, entryId: id, late: said === null || type === undefined }
}

const PASSED: CommandType = { ...UNKNOWN, frees: true }
