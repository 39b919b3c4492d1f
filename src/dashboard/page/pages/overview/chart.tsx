/**
 * chart - recipients as columns and rates as lines over one axis of time, with one cursor for all
 *
 * The cursor is a slider, so it is moved with keys, by touch and by a screen reader; a pointer over the drawing moves
 * it too. Drawn at the measured width. The table below holds the same figures.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { capital, formatNumber, formatShare } from '../../api/words.ts'
import { BRAKE, labelOf, longLabelOf } from './chart-words.ts'
import { type FigureColumn, type Range, type Rate, ratesOf, type Zone } from './figures.ts'
import { FOOT, HEIGHT, LEFT, LinePanel, PANELS, RIGHT, VolumePanel } from './panels.tsx'

export interface ChartProps {
  readonly columns: readonly FigureColumn[]
  /** The same columns of the period before. */
  readonly before: readonly FigureColumn[]
  readonly range: Range
  readonly zone: Zone
  /** The messages of a column. */
  readonly hrefOf: (column: FigureColumn) => string
}

const LABEL_WIDTH = 64

/** The chart with its cursor and its table. */
export function FiguresChart(props: ChartProps) {
  const { columns, range, zone, hrefOf } = props
  const [width, frame] = useWidth()
  const [chosen, choose] = useState(columns.length - 1)
  const at = Math.min(chosen, columns.length - 1)
  const column = columns[at] as FigureColumn
  const point = (event: PointerEvent) => {
    const { left, width: whole } = (event.currentTarget as Element).getBoundingClientRect()
    const share = (event.clientX - left - LEFT) / (whole - LEFT - RIGHT)
    choose(Math.max(0, Math.min(columns.length - 1, Math.floor(share * columns.length))))
  }
  return (
    <div class="chart">
      <p class="readout">
        <b>{capital(longLabelOf(column, range, zone))}</b>
        <span>{wordsOf(column)}</span>
        <Link href={hrefOf(column)}>See messages</Link>
      </p>
      <div ref={frame} class="chart-frame" onPointerMove={point} onPointerDown={point}>
        {width > 0 && <Drawing {...props} width={width} at={at} />}
      </div>
      <input
        type="range"
        class="cursor"
        min={0}
        max={columns.length - 1}
        value={at}
        aria-label={range.by === 'hour' ? 'Hour shown' : 'Day shown'}
        aria-valuetext={`${longLabelOf(column, range, zone)}: ${wordsOf(column)}`}
        onInput={(event) => choose(Number(event.currentTarget.value))}
      />
      <details>
        <summary>Show as a table</summary>
        <FiguresTable {...props} />
      </details>
    </div>
  )
}

function useWidth() {
  const frame = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    if (frame.current !== null) watch.observe(frame.current)
    return () => watch.disconnect()
  }, [])
  return [width, frame] as const
}

function wordsOf(column: FigureColumn): string {
  const rates = ratesOf(column)
  const rate = (name: Rate, word: string) => (rates[name] === null ? [] : [`${formatShare(rates[name])} ${word}`])
  return [
    `${formatNumber(column.accepted)} accepted`,
    ...rate('delivered', 'delivered'),
    ...rate('deferred', 'deferred'),
    ...rate('bounced', 'bounced'),
    ...rate('complained', 'complaints'),
  ].join(', ')
}

interface DrawingProps extends ChartProps {
  readonly width: number
  readonly at: number
}

function Drawing({ columns, before, range, zone, width, at }: DrawingProps) {
  const slot = (width - LEFT - RIGHT) / columns.length
  const xOf = (n: number) => LEFT + (n + 0.5) * slot
  const each = Math.max(1, Math.ceil((LABEL_WIDTH * columns.length) / (width - LEFT)))
  return (
    <svg
      width={width}
      height={HEIGHT}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      role="img"
      aria-label="Recipients and rates over time"
    >
      <rect class="hit" x={LEFT + at * slot} y={0} width={slot} height={FOOT} rx="4" />
      <VolumePanel columns={columns} slot={slot} width={width} />
      {PANELS.map((panel) => (
        <LinePanel key={panel.rate} panel={panel} {...{ columns, before, xOf, width, at }} limit={BRAKE} />
      ))}
      {columns.map((column, n) =>
        n % each === 0 ? (
          <text key={column.at} x={xOf(n)} y={HEIGHT - 4} text-anchor="middle">
            {labelOf(column.at, range, zone)}
          </text>
        ) : null,
      )}
    </svg>
  )
}

const TITLES = ['Time', 'Accepted', 'Delivered', 'Deferred', 'Bounced', 'Complaints']

function FiguresTable({ columns, range, zone, hrefOf }: ChartProps) {
  const withRate = (count: number, share: number | null) =>
    share === null || count === 0 ? formatNumber(count) : `${formatNumber(count)} (${formatShare(share)})`
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard.
    <section class="scrolled" tabIndex={0} aria-label="Figures">
      <table class="figures-table">
        <thead>
          <tr>
            {TITLES.map((word) => (
              <th scope="col" key={word}>
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {columns.map((column) => {
            const rates = ratesOf(column)
            return (
              <tr key={column.at}>
                <th scope="row">
                  <Link href={hrefOf(column)}>{labelOf(column.at, range, zone)}</Link>
                </th>
                <td>{formatNumber(column.accepted)}</td>
                <td>{withRate(column.delivered, rates.delivered)}</td>
                <td>{withRate(column.deferred, rates.deferred)}</td>
                <td>{withRate(column.bounced, rates.bounced)}</td>
                <td>{withRate(column.complained, rates.complained)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </section>
  )
}
