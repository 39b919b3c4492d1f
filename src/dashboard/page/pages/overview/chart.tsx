/**
 * chart - columns of final results, with a strip of deferrals and complaints below, because a deferred recipient gets a
 * final result later and would count twice
 *
 * Drawn at the measured width. For readers of screens there is the same as a table.
 */
import { ticks } from 'd3-array'
import { useEffect, useRef, useState } from 'preact/hooks'
import { formatNumber } from '../../api/words.ts'
import type { FigureColumn, Range } from './figures.ts'

const HEIGHT = 260
const LEFT = 44
const RIGHT = 4
const TOP = 8
/** Vertical positions of columns and strips. */
const GROUND = 196
const DEFERRED_AT = 212
const COMPLAINED_AT = 226
const WORDS_AT = 250
const LABEL_WIDTH = 64

const HOUR = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hour12: false })
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** How a column's time is written. Days are those of UTC, as limits and figures are. */
export function labelOf(at: string, by: Range['by']): string {
  return (by === 'hour' ? HOUR : DAY).format(new Date(at))
}

const LEGEND = [
  ['delivered', 'Delivered'],
  ['deferred', 'Deferred'],
  ['bounced', 'Bounced'],
  ['spam_complaint', 'Complaints'],
] as const

/** The chart with its legend and its table. */
export function FiguresChart({ columns, range }: { columns: readonly FigureColumn[]; range: Range }) {
  const frame = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    if (frame.current !== null) watch.observe(frame.current)
    return () => watch.disconnect()
  }, [])
  return (
    <div class="chart">
      <p class="legend" aria-hidden="true">
        {LEGEND.map(([tone, word]) => (
          <span key={tone} class={tone}>
            {word}
          </span>
        ))}
      </p>
      <div ref={frame} class="chart-frame">
        {width > 0 && <Drawing columns={columns} range={range} width={width} />}
      </div>
      <details>
        <summary>Show as a table</summary>
        <FiguresTable columns={columns} range={range} />
      </details>
    </div>
  )
}

interface DrawingProps {
  readonly columns: readonly FigureColumn[]
  readonly range: Range
  readonly width: number
}

function Drawing({ columns, range, width }: DrawingProps) {
  const highest = Math.max(4, ...columns.map(({ delivered, bounced }) => delivered + bounced))
  const steps = ticks(0, highest, 4).filter(Number.isInteger)
  const yOf = (value: number) => GROUND - (value / highest) * (GROUND - TOP)
  const slot = (width - LEFT - RIGHT) / columns.length
  const each = Math.max(1, Math.ceil((LABEL_WIDTH * columns.length) / (width - LEFT)))
  return (
    <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label="Recipients over time">
      {steps.map((value) => (
        <g key={value}>
          <line x1={LEFT} x2={width} y1={yOf(value)} y2={yOf(value)} />
          <text x={LEFT - 8} y={yOf(value) + 4} text-anchor="end">
            {formatNumber(value)}
          </text>
        </g>
      ))}
      {columns.map((column, n) => (
        <Column key={column.at} column={column} x={LEFT + n * slot} slot={slot} yOf={yOf} range={range} />
      ))}
      {columns.map(({ at }, n) =>
        n % each === 0 ? (
          <text key={at} x={LEFT + (n + 0.5) * slot} y={WORDS_AT} text-anchor="middle">
            {labelOf(at, range.by)}
          </text>
        ) : null,
      )}
    </svg>
  )
}

interface ColumnProps {
  readonly column: FigureColumn
  readonly x: number
  readonly slot: number
  readonly yOf: (value: number) => number
  readonly range: Range
}

function Column({ column, x, slot, yOf, range }: ColumnProps) {
  const { at, delivered, bounced, deferred, complained } = column
  const gap = Math.min(6, slot * 0.25)
  const wide = Math.max(1, slot - gap)
  const left = x + gap / 2
  const topOfDelivered = yOf(delivered)
  const heightOfBounced = Math.max(bounced > 0 ? 2 : 0, topOfDelivered - yOf(delivered + bounced))
  const words = `${labelOf(at, range.by)}: ${delivered} delivered, ${bounced} bounced, ${deferred} deferred, ${complained} complaints`
  const radius = (value: number) => Math.min(5, slot / 2, 1.5 + Math.log10(value + 1))
  return (
    <g>
      <title>{words}</title>
      <rect class="hit" x={x} y={TOP} width={slot} height={COMPLAINED_AT - TOP + 6} rx="4" />
      {delivered > 0 && (
        <rect class="mark delivered" x={left} y={topOfDelivered} width={wide} height={GROUND - topOfDelivered} rx="2" />
      )}
      {bounced > 0 && (
        <rect
          class="mark bounced"
          x={left}
          y={topOfDelivered - heightOfBounced - (delivered > 0 ? 1 : 0)}
          width={wide}
          height={heightOfBounced}
          rx="1.5"
        />
      )}
      {deferred > 0 && <circle class="mark deferred" cx={x + slot / 2} cy={DEFERRED_AT} r={radius(deferred)} />}
      {complained > 0 && (
        <circle class="mark spam_complaint" cx={x + slot / 2} cy={COMPLAINED_AT} r={radius(complained)} />
      )}
    </g>
  )
}

function FiguresTable({ columns, range }: Omit<DrawingProps, 'width'>) {
  return (
    <div class="scrolled">
      <table class="figures-table">
        <thead>
          <tr>
            {['Time', 'Accepted', 'Delivered', 'Bounced', 'Deferred', 'Complaints'].map((word) => (
              <th scope="col" key={word}>
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {columns.map(({ at, accepted, delivered, bounced, deferred, complained }) => (
            <tr key={at}>
              <th scope="row">{labelOf(at, range.by)}</th>
              {[accepted, delivered, bounced, deferred, complained].map((value, n) => (
                <td key={n}>{formatNumber(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
