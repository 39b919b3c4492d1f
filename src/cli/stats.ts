/** stats - `sendwright stats`: delivery statistics of a server, by hour or day. */
import { type Command, Option } from 'commander'
import type { Stats } from '../../schemas/stats.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { parseInstant, withServerOptions } from './console/options.ts'
import { type Ended, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

interface StatsOptions extends ClientOptions {
  since?: string
  until?: string
  by: string
  stream?: string
  groupBy?: string
}

/** Adds the command. `ended` is called with the exit code of the command that ran. */
export function addStatsCommands(program: Command, ended: Ended): void {
  withServerOptions(program.command('stats'))
    .description(
      'delivery statistics of a server, in recipients; each event is counted at the time at which it happened',
    )
    .option('--since <instant>', 'start of the period (default: 30 days ago; by hour: a day ago)', parseInstant)
    .option('--until <instant>', 'before this (default: now)', parseInstant)
    .addOption(new Option('--by <unit>', 'length of a period').choices(['hour', 'day', 'total']).default('day'))
    .option('--stream <id>', 'only this stream')
    .addOption(
      new Option(
        '--group-by <kind>',
        'outcomes by receiving site, class of bounces and deferrals, stream or tag',
      ).choices(['site', 'class', 'stream', 'tag']),
    )
    .action(async (options) => ended(await showStats(options)))
}

async function showStats(options: StatsOptions): Promise<number> {
  const { since, until, by, stream, groupBy } = options
  const query = new URLSearchParams({ by })
  for (const [name, value] of Object.entries({ from: since, to: until, streamId: stream, groupBy }))
    if (value !== undefined) query.set(name, value)
  const answer = await makeClient(options, 'server').get<Stats>(`/v1/stats?${query}`)
  if (groupBy !== undefined) return print(options, answer, ({ groups }) => formatGroups(groups, { by, groupBy }))
  return print(options, answer, ({ stats }) =>
    formatTable(
      [
        'from',
        'accepted',
        'delivered',
        'deferred',
        'bounced hard',
        'soft',
        'complained',
        'left',
        'suppressed',
        'stream',
      ],
      stats.map((one) => [
        by === 'day' ? one.at.slice(0, 10) : one.at.slice(0, 16),
        String(one.accepted),
        String(one.delivered),
        String(one.deferred),
        String(one.hardBounced),
        String(one.softBounced),
        String(one.complained),
        String(one.unsubscribed),
        String(one.suppressed),
        one.streamId,
      ]),
    ),
  )
}

function formatGroups(groups: Stats['groups'], { by, groupBy }: { by: string; groupBy: string }): string {
  const rows = groups.map(({ at, group, other: _, handOver, ...counts }) => [
    by === 'hour' ? at.slice(0, 16) : at.slice(0, 10),
    group ?? '(no name)',
    String(counts.delivered),
    String(counts.deferred),
    String(counts.hardBounced),
    String(counts.softBounced),
    String(counts.complained),
    String(counts.unsubscribed),
    formatSeconds(handOver.p50Ms),
    formatSeconds(handOver.p95Ms),
  ])
  const counts = ['delivered', 'deferred', 'bounced hard', 'soft', 'complained', 'left']
  return formatTable(['from', groupBy, ...counts, 'p50', 'p95'], rows)
}

function formatSeconds(ms: number | null): string {
  return ms === null ? '-' : `${(ms / 1000).toFixed(1)} s`
}
