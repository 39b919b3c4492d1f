/** outcomes - the outcomes of a period by provider, reason or stream, with the time to hand-over */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Stats, StatsGroup, StatsGroupBy } from '../../../../../schemas/stats.ts'
import type { Stream } from '../../../../../schemas/stream.ts'
import { call, queryOf } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { formatNumber, formatShare } from '../../api/words.ts'
import { Segments } from '../../parts/button.tsx'
import { Card, Empty, Shown } from '../../parts/card.tsx'
import { type Column, Rows } from '../../parts/list.tsx'

interface OutcomesProps {
  readonly serverId: string
  /** Begin and end of the period. */
  readonly from: string
  readonly to: string
  readonly streams: readonly Stream[]
}

const KINDS: readonly (readonly [by: StatsGroupBy, word: string])[] = [
  ['site', 'Provider'],
  ['class', 'Reason'],
  ['stream', 'Stream'],
]

/** Providers by the names of the API; other sites are domains. */
const PROVIDERS: Readonly<Record<string, string>> = {
  google: 'Google',
  microsoft: 'Microsoft',
  yahoo: 'Yahoo',
  apple: 'Apple',
  'united-internet': 'GMX, WEB.DE, IONOS',
  proofpoint: 'Proofpoint',
  mimecast: 'Mimecast',
  barracuda: 'Barracuda',
  simulator: 'Simulator',
  none: 'No server reached',
  other: 'Others',
}

/** The card. */
export function Outcomes({ serverId, from, to, streams }: OutcomesProps) {
  const [by, setBy] = useState<StatsGroupBy>('site')
  const stats = useLoad<Stats>(
    (signal) => {
      const query = queryOf({ from, to, by: 'total', groupBy: by })
      return call('GET', serverApi(serverId, `/stats${query}`), { signal })
    },
    [serverId, from, to, by],
  )
  const word = KINDS.find(([kind]) => kind === by)?.[1] ?? ''
  return (
    <Card title="Outcomes" side={<Segments label="Group outcomes by" options={KINDS} value={by} onChange={setBy} />}>
      <Shown of={stats} lines={4}>
        {({ groups }) =>
          groups.length === 0 ? (
            <Empty icon="send" title="No outcomes in this period" />
          ) : (
            <Rows
              label={`Outcomes by ${word.toLowerCase()}`}
              keyOf={({ group }) => group}
              rows={groups}
              columns={columnsOf(by, { serverId, streams })}
            />
          )
        }
      </Shown>
    </Card>
  )
}

type Of = Pick<OutcomesProps, 'serverId' | 'streams'>

function columnsOf(by: StatsGroupBy, of: Of): Column<StatsGroup>[] {
  const word = KINDS.find(([kind]) => kind === by)?.[1] ?? ''
  const name: Column<StatsGroup> = { title: word, kind: 'grow', cell: ({ group }) => nameOf(by, group, of) }
  const bounced = (row: StatsGroup) => row.hardBounced + row.softBounced
  if (by === 'class')
    return [
      name,
      { title: 'Deferred', cell: ({ deferred }) => formatNumber(deferred) },
      { title: 'Bounced', cell: (row) => formatNumber(bounced(row)) },
    ]
  const shareOf = (count: number, row: StatsGroup) => {
    const ended = row.delivered + bounced(row)
    return ended === 0 ? formatNumber(count) : `${formatNumber(count)} (${formatShare(count / ended)})`
  }
  return [
    name,
    { title: 'Delivered', cell: (row) => shareOf(row.delivered, row) },
    { title: 'Deferred', cell: (row) => formatNumber(row.deferred) },
    { title: 'Bounced', cell: (row) => shareOf(bounced(row), row) },
    { title: 'Complaints', cell: (row) => formatNumber(row.complained) },
    { title: 'Half within', cell: ({ handOver }) => formatTime(handOver.p50Ms) },
    { title: '95 % within', cell: ({ handOver }) => formatTime(handOver.p95Ms) },
  ]
}

/** The name of a group. A stream leads to its messages. */
function nameOf(by: StatsGroupBy, group: string, { serverId, streams }: Of) {
  if (by === 'site') return PROVIDERS[group] ?? group
  if (by === 'class' || group === 'other') return group
  const text = streams.find(({ streamId }) => streamId === group)?.name ?? group
  return (
    <Link href={serverPath(serverId, 'messages')} state={{ filters: { streamId: group } }}>
      {text}
    </Link>
  )
}

/** The upper bound of a time to hand-over. */
function formatTime(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${(ms / 3_600_000).toFixed(1)} h`
}
