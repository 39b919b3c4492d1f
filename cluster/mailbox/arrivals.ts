/** arrivals - turns the entries of a mailbox, or of outcomes, into work of a shard. */
import type { Command, CommandType, OutcomeBody } from '../behaviour.ts'
import { Fault } from '../fault.ts'
import type { InboxEntry } from '../store.ts'
import { internalWork, type Origin, type Work } from '../work.ts'
import { type ParcelCommand, unpackParcel } from './parcel.ts'
import { unpackStaged } from './staged.ts'

/** Replaces an unknown command: it is answered with a fault, so that the cursor passes it. */
const UNKNOWN: CommandType = {
  name: 'unknown',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide: () => ({ kind: 'done', reply: null }),
}

/** Commands received at `cameAtMs` (monotonic). */
interface Came {
  readonly commands: ReadonlyMap<string, CommandType>
  readonly cameAtMs: number
}

/**
 * The commands of an entry from place `done` on. If its content has expired, is malformed or has no such place, a
 * single work remains that only moves the cursor past it, and the caller gets its answer by the deadline.
 */
export function parcelWorks({ id, parcelId, replyTo, body }: InboxEntry, done: number, came: Came): Work[] {
  const commands = body === null ? null : unpackParcel(body)
  if (commands === null || done >= commands.length) {
    const origin = { parcelId, replyTo: '', count: 1 }
    const command = { name: UNKNOWN.name, cmdId: parcelId, body: null }
    const base = internalWork('mailbox', UNKNOWN, { command, lane: '', item: '', cameAtMs: came.cameAtMs })
    const broken = body !== null && commands === null ? new Fault('Entry is no parcel', { id }) : null
    return [{ ...base, entryId: id, origin, broken, late: broken === null }]
  }
  const origin = { parcelId, replyTo, count: commands.length }
  const works: Work[] = []
  for (let place = done; place < commands.length; place += 1)
    works.push(makeWork(commands[place]!, { id, origin, place }, came))
  return works
}

function makeWork(
  { command, deadlineMs, bytes }: ParcelCommand,
  { id, origin, place }: { id: string; origin: Origin; place: number },
  { commands, cameAtMs }: Came,
): Work {
  const type = commands.get(command.name)
  const said =
    type === undefined ? new Fault('Command is unknown', { name: command.name }) : unpackCommand(command, type)
  return {
    source: 'mailbox',
    type: type ?? UNKNOWN,
    command: said instanceof Fault ? command : said,
    deadlineMs,
    cameAtMs,
    bytes,
    needs: 0,
    broken: said instanceof Fault ? said : null,
    late: false,
    answer: null,
    entryId: id,
    origin,
    place,
    lane: '',
    item: '',
  }
}

/** A command as its behaviour knows it. */
function unpackCommand(command: Command, { wire }: CommandType): Command | Fault {
  if (wire === undefined) return command
  try {
    return { ...command, body: wire.unpack(command.body) }
  } catch {
    return new Fault('Command is none of its kind', { name: command.name })
  }
}

/**
 * An outcome that another process handed in; with a null `type` its lane no longer exists, and the cursor just passes
 * it.
 */
export function outcomeWork(
  { id, parcelId: cmdId, body }: InboxEntry,
  { typeOf, cameAtMs }: { typeOf: (lane: string) => CommandType | undefined; cameAtMs: number },
): Work {
  const said = outcomeIn(body)
  const { lane, item } = said ?? { lane: '', item: '' }
  const type = typeOf(lane)
  const command = { name: type?.name ?? UNKNOWN.name, cmdId, body: said }
  const base = internalWork('outcome', type ?? PASSED, { command, lane, item, cameAtMs })
  return { ...base, entryId: id, late: said === null || type === undefined }
}

const PASSED: CommandType = { ...UNKNOWN, frees: true }

function outcomeIn(body: Uint8Array | null): OutcomeBody | null {
  const said = (body === null ? null : unpackStaged(body)?.body) as Partial<OutcomeBody> | null | undefined
  return typeof said?.lane === 'string' && typeof said.item === 'string' ? (said as OutcomeBody) : null
}
