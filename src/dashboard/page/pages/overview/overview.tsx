/** overview - a server's state: statistics compared with the previous period, open problems, limits, first steps */
import { useState } from 'preact/hooks'
import type { Server } from '../../../../../schemas/server.ts'
import type { Stats } from '../../../../../schemas/stats.ts'
import type { Stream } from '../../../../../schemas/stream.ts'
import { call, queryOf } from '../../api/call.ts'
import { useLive } from '../../api/live.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may, serverOf } from '../../api/session.ts'
import { formatNumber, formatShare } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { LinkButton, Segments } from '../../parts/button.tsx'
import { Card, Head, Shown } from '../../parts/card.tsx'
import type { Tone } from '../../parts/chip.tsx'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { Limits } from '../../parts/limits.tsx'
import { FiguresChart } from './chart.tsx'
import { columnsOf, type Figures, RANGES, type RangeName, ratesOf, spanOf } from './figures.ts'
import { FirstSteps } from './first-steps.tsx'
import { NeedsAttention } from './needs.tsx'
import { Outcomes } from './outcomes.tsx'

/** From one look to the next, and while there is no feed. */
const REST_MS = 5_000
const AWAY_MS = 60_000
/** Spec broadcast.brake */
const BRAKE = 0.001

/** The page. */
export function OverviewPage({ serverId }: PageProps) {
  usePlace({ word: 'Overview' })
  const [name, setName] = useState<RangeName>('24h')
  const [streamId, setStreamId] = useState('')
  const range = RANGES.find((one) => one.name === name) ?? RANGES[0]!
  const span = spanOf(range, Date.now())
  const stats = useLoad<Stats>(
    (signal) => {
      const query = queryOf({ from: span.from, to: span.to, by: range.by, streamId })
      return call('GET', serverApi(serverId, `/stats${query}`), { signal })
    },
    [serverId, name, streamId],
  )
  const server = useLoad<Server>((signal) => call('GET', serverApi(serverId, '/server'), { signal }), [serverId])
  const streams = useLoad<{ streams: Stream[] }>(
    (signal) => call('GET', serverApi(serverId, '/streams?limit=100'), { signal }),
    [serverId],
  )
  const look = () => {
    stats.reload()
    server.reload()
  }
  useLive(serverId, { call: look, restMs: REST_MS, awayMs: AWAY_MS })
  const sending = (streams.value?.streams ?? []).filter(({ kind }) => kind !== 'inbound')
  const where = `Times ${range.by === 'hour' ? 'of your zone' : 'by the day in UTC'}`
  return (
    <>
      <Head title="Overview" meta={where}>
        {sending.length > 1 && <StreamChoice streams={sending} value={streamId} onChange={setStreamId} />}
        {serverOf(serverId)?.mode === 'test' && may('write') && (
          <LinkButton icon="send" href={serverPath(serverId, 'start')}>
            Send a test message
          </LinkButton>
        )}
        <Segments label="Range" options={RANGES.map((one) => [one.name, one.word])} value={name} onChange={setName} />
      </Head>
      <FirstSteps serverId={serverId} />
      <Shown of={stats} lines={12}>
        {({ stats: rows }) => {
          const { columns, now, before } = columnsOf(rows, range, span.startMs)
          return (
            <>
              <Sums now={now} before={before} word={range.before} />
              <div class="columns">
                <Card title={range.by === 'hour' ? 'Recipients by hour' : 'Recipients by day'}>
                  <FiguresChart columns={columns} range={range} />
                </Card>
                <div class="stack">
                  <NeedsAttention serverId={serverId} limits={server.value?.limits ?? []} streams={sending} />
                  <Card title="Limits">
                    <Shown of={server} lines={3}>
                      {({ limits }) => <Limits limits={limits} />}
                    </Shown>
                  </Card>
                </div>
              </div>
              <Outcomes
                serverId={serverId}
                from={new Date(span.startMs).toISOString()}
                to={span.to}
                streams={sending}
              />
            </>
          )
        }}
      </Shown>
    </>
  )
}

interface StreamChoiceProps {
  readonly streams: readonly Stream[]
  readonly value: string
  readonly onChange: (streamId: string) => void
}

function StreamChoice({ streams, value, onChange }: StreamChoiceProps) {
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

function Sums({ now, before, word }: { now: Figures; before: Figures; word: string }) {
  const rates = ratesOf(now)
  const old = ratesOf(before)
  const than = (share: number | null) => (share === null ? `nothing ${word}` : `${formatShare(share)} ${word}`)
  return (
    <dl class="figures">
      <Sum tone="accepted" icon="send" word="Accepted" value={formatNumber(now.accepted)}>
        {`${formatNumber(before.accepted)} ${word}`}
      </Sum>
      <Sum tone="delivered" icon="check" word="Delivered" value={formatShare(rates.delivered)}>
        {than(old.delivered)}
      </Sum>
      <Sum tone="bounced" icon="bounced" word="Bounced" value={formatShare(rates.bounced)}>
        {than(old.bounced)}
      </Sum>
      <Sum tone="spam_complaint" icon="flag" word="Complaints" value={formatShare(rates.complained)}>
        {(rates.complained ?? 0) > BRAKE ? 'above the limit of 0.10 %' : 'the limit is 0.10 %'}
      </Sum>
    </dl>
  )
}

interface SumProps {
  readonly tone: Tone
  readonly icon: IconName
  readonly word: string
  readonly value: string
  readonly children: string
}

function Sum({ tone, icon, word, value, children }: SumProps) {
  return (
    <div class={`card ${tone}`}>
      <dt>
        <Icon name={icon} />
        {word}
      </dt>
      <dd class="num">{value}</dd>
      <dd class="than">{children}</dd>
    </div>
  )
}
