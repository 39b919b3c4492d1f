/**
 * objects - `sendwright repair objects` and `sendwright inspect segment`: segments of the log and packs of text and
 * HTML that are in the content store.
 */
import type { Command } from 'commander'
import type { ObjectFault, ObjectsFound } from '../../store/repair/check-objects.ts'
import type { SegmentRows } from '../../store/repair/inspect-segment.ts'
import type { OpenObjects } from '../../store/repair/open-objects.ts'
import type { Repaired } from '../../store/repair/repair-objects.ts'
import { isAgreed } from '../console/agreed.ts'
import { CommandFailure } from '../console/failure.ts'
import { inStore } from '../console/in-store.ts'
import type { Ended } from '../console/print.ts'

/** Faults that are printed. */
const LINES_MAX = 100
const DAMAGES = {
  missing: 'is missing',
  broken: 'is damaged',
  away: 'was not read, because the content store did not answer',
}
const DONE: Readonly<Record<Repaired, string>> = {
  restored: 'restored from the backup',
  'written-off': 'written off: its messages are refused as damaged',
  thawed: 'thawed: the next sweep seals it again',
  rebuilt: 'rebuilt',
  removed: 'removed',
  left: 'left as it is',
}
const NO_OBJECTS = 'All content of this installation is in Redis: it has no segments or packs in a content store'

interface ObjectsOptions {
  from?: string
  writeOff?: boolean
  yes?: boolean
  json?: boolean
}

/** Adds `objects` to `sendwright repair`. */
export function addRepairObjects(repair: Command, ended: Ended): void {
  repair
    .command('objects')
    .description(
      'open every segment of the log and every pack of text and HTML in the content store and, with your confirmation, repair what can be repaired: objects from a backup, filters, frozen segments, objects that no row names; exit code 1 if data stays unreadable',
    )
    .option('--from <directory>', 'a backup, or a folder with a copy of the bucket in its folder content')
    .option('--write-off', 'give up segments that are missing or damaged and not in the backup')
    .option('--yes', 'do not ask')
    .option('--json', 'print the result as one line of JSON')
    .action(async (_options: ObjectsOptions, command: Command) =>
      ended(await repairObjects(command.optsWithGlobals<ObjectsOptions>())),
    )
}

async function repairObjects({ from, writeOff = false, yes, json }: ObjectsOptions): Promise<number> {
  const { withStore } = await import('../../store/with-store.ts')
  const { withObjects } = await import('../../store/repair/open-objects.ts')
  const { checkObjects, isLoss } = await import('../../store/repair/check-objects.ts')
  const { repairFault } = await import('../../store/repair/repair-objects.ts')
  const order = { from: from ?? null, writesOff: writeOff }
  const repairOpen = async (open: OpenObjects) => {
    const found = await checkObjects(open)
    if (!json) for (const line of formatObjects(found)) console.log(line)
    const { faults } = found
    if (faults.length === 0) return { found, done: [], left: 0 }
    if (!yes) await confirmRepair(faults.length)
    const done: Repaired[] = []
    for (const fault of faults) done.push(await repairFault(open, fault, order))
    const again = await checkObjects(open)
    return { found, done, left: again.faults.filter(isLoss).length }
  }
  const outcome = await inStore((config) => withStore(config, (nodes) => withObjects(nodes, config, repairOpen)))
  if (outcome === null) throw new CommandFailure(NO_OBJECTS)
  const { found, done, left } = outcome
  const lines = done.slice(0, LINES_MAX).map((what, at) => `${nameOf(found.faults[at] as ObjectFault)}: ${DONE[what]}`)
  lines.push(left === 0 ? 'All data in the content store is readable' : `Still unreadable: ${left}`)
  console.log(json ? JSON.stringify({ found: withoutRows(found), done, left }) : lines.join('\n'))
  return left === 0 ? 0 : 1
}

async function confirmRepair(faults: number): Promise<void> {
  const isConfirmed = await isAgreed(`Repair what can be repaired of ${faults}?`)
  if (!isConfirmed) throw new CommandFailure('Nothing was changed: confirm with --yes')
}

/** Rows hold sealed keys, which are of no use to a reader. */
function withoutRows({ faults, ...found }: ObjectsFound): object {
  return { ...found, faults: faults.map((fault) => ({ ...fault, row: undefined })) }
}

/** What was opened, and each fault. */
export function formatObjects({ segments, messages, packs, bodies, faults }: ObjectsFound): string[] {
  const more = faults.length > LINES_MAX ? [`and ${faults.length - LINES_MAX} more`] : []
  return [
    `${segments} segments of the log with ${messages} messages, and ${bodies} bodies in ${packs} packs were opened`,
    ...faults.slice(0, LINES_MAX).map((fault) => `${nameOf(fault)} ${faultOf(fault)}`),
    ...more,
    ...(faults.length === 0 ? [] : ['To repair them: sendwright repair objects']),
  ]
}

function nameOf(fault: ObjectFault): string {
  if (fault.kind === 'pack') return `Pack ${fault.object}`
  if (fault.kind === 'unnamed') return `Object ${fault.object}`
  return `Segment ${fault.segment} of server ${fault.serverId}`
}

function faultOf(fault: ObjectFault): string {
  switch (fault.kind) {
    case 'segment':
      return `with ${fault.messages} messages: its object ${fault.object} ${DAMAGES[fault.damage]}`
    case 'written-off':
      return `was written off: ${fault.messages} messages are lost`
    case 'frozen':
      return `has been frozen since ${fault.since}`
    case 'filter':
      return 'has no filter of its persons, so every search opens it'
    case 'recalled':
      return fault.isListed
        ? 'has changed messages, and its row is missing: its other messages are lost'
        : 'has left the log, and rows of changed messages are left'
    case 'pack':
      return `${DAMAGES[fault.damage]}: text and HTML of ${fault.messages} messages`
    case 'unnamed':
      return 'is named by no row'
  }
}

/** Prints the rows of a segment as Redis would hold them, from the content store if it is sealed. Returns 0. */
export async function inspectSegment(serverId: string, segment: string, { json }: { json?: boolean }): Promise<number> {
  const { readSegment } = await import('../../store/repair/inspect-segment.ts')
  const found = await inStore((config) => readSegment(config, { serverId, segment }))
  if (found === null) throw new CommandFailure(`Server ${serverId} has no segment ${segment}`)
  if (json) console.log(JSON.stringify(found))
  else for (const line of formatSegment(found)) console.log(line)
  return 0
}

function formatSegment({ keys, sealed, messages }: SegmentRows): string[] {
  const place =
    sealed === null
      ? ['The segment is in Redis']
      : [
          `Object ${sealed.object}, generation ${sealed.generation}, ${sealed.size} bytes in ${sealed.blocks} blocks`,
          `${sealed.recalled} of its messages were changed since and are in Redis`,
        ]
  return [
    ...place,
    ...messages.flatMap(({ entryId, block, log, head, statuses }) => [
      '',
      `XRANGE ${keys.log} ${entryId} ${entryId}${block === null ? '' : `  (block ${block})`}`,
      `  m ${log}`,
      ...(head === null ? [] : [`HGET ${keys.head} ${head[0]}`, `  ${head[1]}`]),
      ...statuses.flatMap(([field, text]) => [`HGET ${keys.status} ${field}`, `  ${text}`]),
    ]),
  ]
}
