/** outcomes - the outcomes of a period by provider, reason, stream or tag, with the time to hand-over */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Stats, StatsGroup, StatsGroupBy } from '../../../../../schemas/stats.ts'
import type { Stream } from '../../../../../schemas/stream.ts'
import { call, formatQuery } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { messagesPath, serverApi } from '../../api/place.ts'
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
  ['tag', 'Tag'],
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
}

/** The card. */
export function Outcomes({ serverId, from, to, streams }: OutcomesProps) {
  const [by, setBy] = useState<StatsGroupBy>('site')
  const stats = useLoad<Stats>(
    (signal) => {
      const query = formatQuery({ from, to, by: 'total', groupBy: by })
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
              keyOf={({ group, other }) => JSON.stringify([group, other])}
              rows={groups}
              columns={columnsOf(by, { serverId, streams, from, to })}
            />
          )
        }
      </Shown>
    </Card>
  )
}

type Of = Pick<OutcomesProps, 'serverId' | 'streams' | 'from' | 'to'>

function columnsOf(by: StatsGroupBy, of: Of): Column<StatsGroup>[] {
  const word = KINDS.find(([kind]) => kind === by)?.[1] ?? ''
  const name: Column<StatsGroup> = { title: word, kind: 'grow', cell: (row) => <GroupName {...{ by, row, of }} /> }
  const bounced = (row: StatsGroup) => row.hardBounced + row.softBounced
  const cell = (row: StatsGroup, number: number, event: string) => {
    const filters = filtersOf(by, row, event)
    const ended = row.delivered + bounced(row)
    const isShare = by !== 'class' && ended > 0 && (event === 'delivered' || event === 'bounced')
    const text = isShare ? `${formatNumber(number)} (${formatShare(number / ended)})` : formatNumber(number)
    return <Figure {...{ text, number, filters, of }} />
  }
  const deferred: Column<StatsGroup> = {
    title: 'Deferred',
    kind: 'titled',
    cell: (row) => cell(row, row.deferred, 'deferred'),
  }
  const ofBounces: Column<StatsGroup> = {
    title: 'Bounced',
    kind: 'titled',
    cell: (row) => cell(row, bounced(row), 'bounced'),
  }
  if (by === 'class') return [name, deferred, ofBounces]
  return [
    name,
    { title: 'Delivered', kind: 'titled', cell: (row) => cell(row, row.delivered, 'delivered') },
    deferred,
    ofBounces,
    { title: 'Complaints', kind: 'titled', cell: (row) => cell(row, row.complained, 'spam_complaint') },
    { title: 'Half within', kind: 'titled', cell: ({ handOver }) => formatTime(handOver.p50Ms) },
    { title: '95 % within', kind: 'titled', cell: ({ handOver }) => formatTime(handOver.p95Ms) },
  ]
}

type Filters = Readonly<Record<string, string>>

/** The filters of a group's messages; null if no filter means the same. */
function filtersOf(by: StatsGroupBy, { group, other }: StatsGroup, event: string): Filters | null {
  if (other || group === null) return null
  if (by === 'site') return { site: group, event }
  if (by === 'stream') return { streamId: group, event }
  if (by === 'tag') return { tag: group, event }
  // A deferral keeps no class.
  return event === 'bounced' ? { classification: group } : null
}

interface FigureProps {
  readonly text: string
  readonly number: number
  readonly filters: Filters | null
  readonly of: Of
}

/** A number, which leads to its messages. */
function Figure({ text, number, filters, of }: FigureProps) {
  if (filters === null || number === 0) return <>{text}</>
  const period = { submittedFrom: of.from, submittedTo: of.to }
  return <Link href={messagesPath(of.serverId, { ...filters, ...period })}>{text}</Link>
}

function GroupName({ by, row: { group, other }, of }: { by: StatsGroupBy; row: StatsGroup; of: Of }) {
  if (other) return <b class="name">Others</b>
  if (group === null) return <span class="dim">Name no longer in the log</span>
  if (by === 'site') return <b class="name">{PROVIDERS[group] ?? group}</b>
  if (by === 'class') return <b class="name">{wordOfClass(group)}</b>
  if (by === 'tag') return <b class="name">{group}</b>
  return <b class="name">{of.streams.find(({ streamId }) => streamId === group)?.name ?? 'Archived stream'}</b>
}

/** `InvalidRecipient` as `Invalid recipient`. */
function wordOfClass(name: string): string {
  const words = name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').split(' ')
  return words.map((word, at) => (at === 0 || /^[A-Z]{2}/.test(word) ? word : word.toLowerCase())).join(' ')
}

/** The upper bound of a time to hand-over. */
function formatTime(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${(ms / 3_600_000).toFixed(1)} h`
}
