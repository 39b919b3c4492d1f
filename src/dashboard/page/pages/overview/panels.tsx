/** panels - the parts of the chart, one above the other: columns of final results, and a line for each rate */
import { ticks } from 'd3-array'
import { formatNumber, formatShare } from '../../api/words.ts'
import { type FigureColumn, type Rate, ratesOf } from './figures.ts'

/** Left of the drawing, for the numbers of the axes. */
export const LEFT = 52
export const RIGHT = 6
const VOLUME = { top: 22, bottom: 140 }
const LINE_HEIGHT = 46
const LINE_GAP = 34
/** End of the last panel, and of the drawing with its labels. */
export const FOOT = VOLUME.bottom + 4 * (LINE_HEIGHT + LINE_GAP)
export const HEIGHT = FOOT + 24

interface Panel {
  readonly rate: Rate
  readonly word: string
  readonly tone: string
  readonly top: number
}

const topOf = (n: number) => VOLUME.bottom + n * (LINE_HEIGHT + LINE_GAP) + LINE_GAP
/** Top to bottom. */
export const PANELS: readonly Panel[] = [
  { rate: 'delivered', word: 'Delivered', tone: 'delivered', top: topOf(0) },
  { rate: 'deferred', word: 'Deferred', tone: 'deferred', top: topOf(1) },
  { rate: 'bounced', word: 'Bounced', tone: 'bounced', top: topOf(2) },
  { rate: 'complained', word: 'Complaints', tone: 'spam_complaint', top: topOf(3) },
]

interface VolumeProps {
  readonly columns: readonly FigureColumn[]
  readonly slot: number
  readonly width: number
}

/** Delivered and bounced recipients, one upon the other. */
export function VolumePanel({ columns, slot, width }: VolumeProps) {
  const { top, bottom } = VOLUME
  const highest = Math.max(4, ...columns.map(({ delivered, bounced }) => delivered + bounced))
  const heightOf = (value: number) => (value / highest) * (bottom - top)
  const gap = Math.min(6, slot * 0.25)
  const wide = Math.max(1, slot - gap)
  return (
    <g>
      <text class="panel-name" x={LEFT} y={top - 10}>
        Recipients with a result
      </text>
      {ticks(0, highest, 3)
        .filter(Number.isInteger)
        .map((value) => (
          <Tick key={value} y={bottom - heightOf(value)} width={width} word={formatNumber(value)} />
        ))}
      {columns.map(({ at, delivered, bounced }, n) => {
        const x = LEFT + n * slot + gap / 2
        const low = Math.max(bounced > 0 ? 2 : 0, heightOf(bounced))
        const high = heightOf(delivered)
        return (
          <g key={at}>
            {delivered > 0 && <rect class="mark delivered" x={x} y={bottom - high} width={wide} height={high} rx="2" />}
            {bounced > 0 && (
              <rect class="mark bounced" x={x} y={bottom - high - low - 1} width={wide} height={low} rx="1.5" />
            )}
          </g>
        )
      })}
    </g>
  )
}

interface LineProps {
  readonly panel: Panel
  readonly columns: readonly FigureColumn[]
  readonly before: readonly FigureColumn[]
  readonly xOf: (n: number) => number
  readonly width: number
  /** The column of the cursor. */
  readonly at: number
  /** Limit of complaints. */
  readonly limit: number
}

/** A rate as a line, that of the period before dashed behind it. */
export function LinePanel({ panel: { rate, word, tone, top }, columns, before, xOf, width, at, limit }: LineProps) {
  const values = columns.map((column) => ratesOf(column)[rate])
  const old = before.map((column) => ratesOf(column)[rate])
  const [low, high] = domainOf(rate, [...values, ...old], limit)
  const bottom = top + LINE_HEIGHT
  const yOf = (value: number) => bottom - ((value - low) / (high - low)) * LINE_HEIGHT
  const place = (value: number | null, n: number) => (value === null ? null : ([xOf(n), yOf(value)] as const))
  const shown = values[at] ?? null
  return (
    <g class={tone}>
      <text class="panel-name" x={LEFT} y={top - 9}>
        {word}
      </text>
      {[low, high].map((value) => (
        <Tick key={value} y={yOf(value)} width={width} word={formatShare(value)} />
      ))}
      {rate === 'complained' && (
        <>
          <line class="limit-line" x1={LEFT} x2={width} y1={yOf(limit)} y2={yOf(limit)} />
          <text x={width - RIGHT} y={yOf(limit) - 4} text-anchor="end">
            Limit {formatShare(limit)}
          </text>
        </>
      )}
      <path class="rate-line old" d={lineOf(old.map(place))} />
      <path class="rate-line" d={lineOf(values.map(place))} />
      {values.map((value, n) => {
        const isAlone = (values[n - 1] ?? null) === null && (values[n + 1] ?? null) === null
        if (value === null || !(isAlone || n === at)) return null
        return <circle key={n} class="mark" cx={xOf(n)} cy={yOf(value)} r={n === at ? 4 : 2.5} />
      })}
      <text class="panel-value" x={width - RIGHT} y={top - 9} text-anchor="end">
        {formatShare(shown)}
      </text>
    </g>
  )
}

function Tick({ y, width, word }: { y: number; width: number; word: string }) {
  return (
    <>
      <line x1={LEFT} x2={width} y1={y} y2={y} />
      <text x={LEFT - 8} y={y + 4} text-anchor="end">
        {word}
      </text>
    </>
  )
}

/** Highest values of an axis, so that it does not change with each event. */
const HIGHEST = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]

/** Lowest and highest value of a rate's axis. */
function domainOf(rate: Rate, values: readonly (number | null)[], limit: number): [low: number, high: number] {
  const known = values.filter((value) => value !== null)
  if (rate === 'delivered') {
    const missing = 1 - Math.min(1, ...known)
    return [1 - (HIGHEST.find((one) => one >= Math.max(0.05, missing)) ?? 1), 1]
  }
  const least = rate === 'complained' ? 2 * limit : 0.01
  return [0, HIGHEST.find((one) => one >= Math.max(least, ...known)) ?? 1]
}

/** A path through the points, with a gap at each that is missing. */
function lineOf(points: readonly (readonly [x: number, y: number] | null)[]): string {
  return points
    .map((point, n) => {
      if (point === null) return ''
      const isFirst = n === 0 || points[n - 1] === null
      return `${isFirst ? 'M' : 'L'}${point[0].toFixed(1)} ${point[1].toFixed(1)}`
    })
    .join('')
}
