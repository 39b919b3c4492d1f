/**
 * store - `sendwright store`, which runs it, and the commands that use it directly: `operator-key`, `backup`, `repair`.
 */
import type { Command } from 'commander'
import type { Backup } from '../store/backup/copy.ts'
import type { ValuesFound } from '../store/repair/check-values.ts'
import type { ShardSides } from '../store/repair/repair.ts'
import { isAgreed } from './console/agreed.ts'
import { CommandFailure } from './console/failure.ts'
import { inStore } from './console/in-store.ts'
import { parseInteger } from './console/options.ts'
import { formatTable } from './console/table.ts'
import { addRepairObjects } from './operator/objects.ts'
import { startStore } from './start.ts'

/** Shards of an installation. */
const SHARDS = 256

interface RepairOptions {
  yes?: boolean
  json?: boolean
}

interface BackupOptions {
  content?: boolean
  keep?: number
  json?: boolean
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addStoreCommands(program: Command, ended: (code: number) => void): void {
  program
    .command('store')
    .description('run only the Redis of DATA_DIR, for processes that use it through REDIS_URL (Procfile)')
    .requiredOption('--port <port>', 'port to listen on, at 127.0.0.1', parseInteger)
    .action(async ({ port }: { port: number }) => {
      // Whatever is still open belongs to the store's care, which has ended.
      process.exit(await startStore(port))
    })
  program
    .command('operator-key')
    .description('create an admin key directly in the store, after the last one was lost')
    .option('--revoke-others', 'revoke all other operator keys, after one has leaked')
    .option('--json', 'print the key as one line of JSON')
    .action(async (options) => ended(await makeKey(options)))
  program
    .command('backup')
    .argument('<directory>', 'directory to create; with --keep, the folder of all backups; `-` writes a tar archive')
    .description('copy the installation while it runs into a directory from which it starts again (DATA_DIR)')
    .option('--keep <n>', 'make a directory named by the time, and remove all but the newest n', parseInteger)
    .option('--no-content', 'leave out the files of large content, if you copy them another way')
    .option('--json', 'print the summary as one line of JSON')
    .action(async (directory: string, options: BackupOptions) => ended(await backUp(directory, options)))
  const repair = program
    .command('repair')
    .argument('<shard>', 'number of a torn shard', parseInteger)
    .description('show both sides of a torn shard and, with your confirmation, continue from the state of the store')
    .option('--yes', 'do not ask')
    .option('--json', 'print the result as one line of JSON')
    .action(async (shard: number, options: RepairOptions) => {
      if (shard >= SHARDS) repair.error(`error: there are ${SHARDS} shards, from 0`)
      ended(await repairShard(shard, options))
    })
  addRepairObjects(repair, ended)
}

async function makeKey({ json, revokeOthers = false }: { json?: boolean; revokeOthers?: boolean }): Promise<number> {
  const { makeOperatorKey } = await import('../service/operator-key.ts')
  const made = await inStore((config) => makeOperatorKey(config, { revokeOthers }))
  if (json) console.log(JSON.stringify(made))
  else {
    console.log(made.token)
    if (made.broken !== null) console.error(`${made.broken}: restore it from a backup, or remove it`)
    const told = made.path === null ? 'Set SENDWRIGHT_OPERATOR_TOKEN to it' : `It is in ${made.path} now`
    console.error(`${told}. Revoked: ${made.revoked.length}`)
  }
  return 0
}

async function backUp(directory: string, options: BackupOptions): Promise<number> {
  if (directory === '-') return await writeOut(options)
  const { content = true, keep, json } = options
  if (keep !== undefined && keep < 1) throw new CommandFailure('--keep: a number from 1')
  const { backUpInto, backUpTo } = await import('../store/backup/ways.ts')
  const made = await inStore<Backup & { readonly removed?: readonly string[] }>((config) =>
    keep === undefined ? backUpTo(config, directory, { content }) : backUpInto(config, directory, { content, keep }),
  )
  if (json) console.log(JSON.stringify(made))
  else {
    for (const line of formatSummary(made)) console.log(line)
    for (const name of made.removed ?? []) console.log(`Removed ${name}`)
    for (const sentence of made.elsewhere) console.error(sentence)
  }
  return 0
}

/** Writes a backup to standard output; its summary goes to standard error. */
async function writeOut({ content = true, keep, json }: BackupOptions): Promise<number> {
  if (keep !== undefined) throw new CommandFailure('--keep: not with an archive on standard output')
  if (process.stdout.isTTY)
    throw new CommandFailure('An archive is not written to a terminal: pipe it into a file or a program')
  const { writeArchive } = await import('../store/backup/ways.ts')
  const made = await inStore((config) => writeArchive(config, { content }))
  for (const line of json ? [JSON.stringify(made)] : [...formatSummary(made), ...made.elsewhere]) console.error(line)
  return 0
}

function formatSummary({ directory, installation, at, storeBytes, objects, objectBytes }: Backup): string[] {
  return [
    `${directory}: installation ${installation}, as it was at ${at}`,
    `Store ${storeBytes} bytes, large content ${objects} files of ${objectBytes} bytes`,
  ]
}

async function repairShard(shard: number, { yes, json }: RepairOptions): Promise<number> {
  const { readSides, repairShard: repair } = await import('../store/repair/repair.ts')
  const { sides, values } = await inStore((config) => readSides(config, shard))
  if (!json) console.log([formatSides(sides), ...formatValues(values)].join('\n'))
  if (!sides.isTorn) {
    const said = values.damaged > 0 ? 'restore them from a backup' : 'nothing to do'
    console.log(json ? JSON.stringify({ isRepaired: false, sides, values }) : `\nShard ${shard} is whole: ${said}`)
    return values.damaged > 0 ? 1 : 0
  }
  if (!yes && !(await isAgreed(`Take shard ${shard} as the store holds it?`)))
    throw new CommandFailure(`Shard ${shard} was not changed: confirm with --yes`)
  const done = await inStore((config) => repair(config, shard))
  console.log(json ? JSON.stringify(done) : `\nShard ${shard} is repaired: it runs again as soon as a process owns it`)
  return 0
}

/** Damaged values, one a line. */
export function formatValues({ checked, damaged, places }: ValuesFound): string[] {
  if (damaged === 0) return [`${checked} stored values are what was written`]
  const lines = places.map(({ key, field }) => `  ${key}${field === null ? '' : ` ${field}`}`)
  return [`${damaged} of ${checked} stored values are damaged:`, ...lines]
}

function formatSides({ shard, meta, journal }: ShardSides): string {
  const rows = journal.map(({ seq, commit, counts }) => ['journal', String(seq), commit, counts])
  const head = ['side', 'seq', 'commit', 'counts']
  return [
    `Shard ${shard}, owner ${meta.owner || 'none'}`,
    '',
    formatTable(head, [['meta', String(meta.seq), meta.commit, ''], ...rows]),
  ].join('\n')
}
