/** overview - a server's state: statistics compared with the previous period, open problems, limits, first steps */
import { useSearchParams } from 'wouter-preact'
import type { Overview } from '../../../../../schemas/dashboard/overview.ts'
import type { Stats } from '../../../../../schemas/stats.ts'
import type { Stream } from '../../../../../schemas/stream.ts'
import { call, formatQuery } from '../../api/call.ts'
import { useLive } from '../../api/live.ts'
import { useLoad } from '../../api/load.ts'
import { messagesPath, serverApi, serverPath } from '../../api/place.ts'
import { findServer, may } from '../../api/session.ts'
import { usePlace } from '../../browser/crumbs.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { LinkButton, Segments } from '../../parts/button.tsx'
import { Card, Head, Shown } from '../../parts/card.tsx'
import { Limits } from '../../parts/limits.tsx'
import { FiguresChart } from './chart.tsx'
import { LOCAL_ZONE } from './chart-words.ts'
import { bordersOf, columnsOf, RANGES, type Range, shownZone, type Zone } from './figures.ts'
import { FirstSteps } from './first-steps.tsx'
import { NeedsAttention } from './needs.tsx'
import { Outcomes } from './outcomes.tsx'
import { Sums } from './sums.tsx'

/** From one look to the next, and while there is no feed. */
const REST_MS = 5_000
const AWAY_MS = 60_000

/** The choices of the page, in its address. */
function useChoices() {
  const [query, setQuery] = useSearchParams()
  const range = RANGES.find(({ name }) => name === query.get('range')) ?? (RANGES[0] as Range)
  const zone: Zone = query.get('zone') === 'utc' ? 'utc' : 'local'
  const choose = (name: string, value: string) =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before)
        if (value === '') next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  return { range, zone, streamId: query.get('stream') ?? '', choose }
}

/** The page. */
export function OverviewPage({ serverId }: PageProps) {
  usePlace({ word: 'Overview' })
  const { range, zone, streamId, choose } = useChoices()
  const borders = bordersOf(range, zone, Date.now())
  const [from, middle, to] = [0, range.columns, 2 * range.columns].map((n) => new Date(borders[n] ?? 0).toISOString())
  const stats = useLoad<Stats>(
    (signal) =>
      call('GET', serverApi(serverId, `/stats${formatQuery({ from, to, by: range.rows, streamId })}`), { signal }),
    [serverId, range.name, zone, streamId],
  )
  const overview = useLoad<Overview>((signal) => call('GET', serverApi(serverId, '/overview'), { signal }), [serverId])
  useLive(serverId, { call: stats.reload, restMs: REST_MS, awayMs: AWAY_MS })
  const sending = (overview.value?.streams ?? []).filter(({ kind }) => kind !== 'inbound')
  const period = { submittedFrom: middle ?? '', submittedTo: to ?? '' }
  const hrefOf = (filters: Readonly<Record<string, string>>) => messagesPath(serverId, { ...filters, streamId })
  return (
    <>
      <Head title="Overview" meta={zoneWords(range, zone)}>
        {findServer(serverId)?.mode === 'test' && may('write') && (
          <LinkButton icon="send" href={serverPath(serverId, 'start')}>
            Send a test message
          </LinkButton>
        )}
        <StreamChoice streams={sending} value={streamId} onChange={(value) => choose('stream', value)} />
        <ZoneChoice range={range} value={zone} onChange={(value) => choose('zone', value)} />
        <Segments
          label="Range"
          options={RANGES.map((one) => [one.name, one.word])}
          value={range.name}
          onChange={(value) => choose('range', value)}
        />
      </Head>
      <Shown of={overview} lines={12}>
        {(shown) => (
          <>
            <FirstSteps serverId={serverId} checklist={shown.checklist} />
            <Shown of={stats} lines={12}>
              {({ stats: rows }) => (
                <Figured {...{ rows, borders, range, zone, hrefOf, period, serverId }} overview={shown} />
              )}
            </Shown>
            <Outcomes serverId={serverId} from={period.submittedFrom} to={period.submittedTo} streams={sending} />
          </>
        )}
      </Shown>
    </>
  )
}

interface FiguredProps {
  readonly rows: Stats['stats']
  readonly borders: readonly number[]
  readonly range: Range
  readonly zone: Zone
  /** The list of messages with filters. */
  readonly hrefOf: (filters: Readonly<Record<string, string>>) => string
  readonly period: Readonly<Record<'submittedFrom' | 'submittedTo', string>>
  readonly serverId: string
  readonly overview: Overview
}

/** Sums and chart, and beside them what needs attention. */
function Figured({ rows, borders, range, zone, hrefOf, period, serverId, overview }: FiguredProps) {
  const { columns, before, now, earlier } = columnsOf(rows, borders)
  return (
    <>
      <Sums now={now} before={earlier} word={range.word} hrefOf={(filters) => hrefOf({ ...filters, ...period })} />
      <div class="columns">
        <Card title={range.by === 'hour' ? 'By hour' : 'By day'} side={<Legend word={range.word} />}>
          <FiguresChart
            key={`${range.name} ${zone}`}
            {...{ columns, before, range, zone }}
            hrefOf={({ at, until }) => hrefOf({ submittedFrom: at, submittedTo: until })}
          />
        </Card>
        <div class="stack">
          <NeedsAttention serverId={serverId} overview={overview} />
          <Card title="Limits">
            <Limits limits={overview.server.limits} />
          </Card>
        </div>
      </div>
    </>
  )
}

function zoneWords(range: Range, zone: Zone): string {
  const name = shownZone(range, zone) === 'utc' ? 'UTC' : LOCAL_ZONE
  return range.by === 'hour' ? `Times in ${name}` : `Days in ${name}`
}

function Legend({ word }: { word: string }) {
  return (
    <p class="legend" aria-hidden="true">
      <span class="line-key">Now</span>
      <span class="line-key old">Previous {word}</span>
    </p>
  )
}

interface ChoiceProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

function StreamChoice({ streams, value, onChange }: ChoiceProps & { readonly streams: readonly Stream[] }) {
  if (streams.length < 2) return null
  return (
    <select class="button" aria-label="Stream" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">All streams</option>
      {streams.map(({ streamId, name }) => (
        <option key={streamId} value={streamId}>
          {name}
        </option>
      ))}
    </select>
  )
}

/** Statistics of more than a week are by days in UTC, and then there is nothing to choose. */
function ZoneChoice({ range, value, onChange }: ChoiceProps & { readonly range: Range }) {
  if (LOCAL_ZONE === 'UTC' || range.rows === 'day') return null
  return (
    <select
      class="button"
      aria-label="Time zone"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value === 'utc' ? 'utc' : '')}
    >
      <option value="local">{LOCAL_ZONE}</option>
      <option value="utc">UTC</option>
    </select>
  )
}
