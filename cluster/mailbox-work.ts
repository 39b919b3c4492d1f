/** mailbox-work - a command of the mailbox as work of a shard. */
import type { CommandType } from './behaviour.ts'
import { Fault } from './fault.ts'
import type { MailboxCommand } from './mailbox-reader.ts'
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
  { command, entryId, deadlineMs, readable }: MailboxCommand,
  { commands, cameAtMs }: { commands: ReadonlyMap<string, CommandType>; cameAtMs: number },
): Work {
  const type = commands.get(command.name)
  const base = internalWork('mailbox', type ?? UNKNOWN, { command, lane: '', item: '', cameAtMs })
  const broken = type === undefined ? new Fault('Command is unknown', { name: command.name }) : null
  return { ...base, deadlineMs: readable ? deadlineMs : 1, entryId, broken, late: !readable }
}
