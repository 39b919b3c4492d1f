/** table - rows of text in columns, for a terminal and for programs that read them. */
import { coloured, shortInstant, type Terminal, thisTerminal } from './terminal.ts'

/** A column is not cut below this. */
const WIDTH_MIN = 10
const GAP = 2

/**
 * Lays out rows under a head. The last column is never padded and never cut, so that a long value can be copied; in a
 * terminal the others are truncated if a line would be too long.
 * @param rows each as long as `head`
 */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  terminal: Terminal = thisTerminal(),
): string {
  const shown = rows.map((row) => row.map((cell) => shortInstant(cell, terminal)))
  const all = [head.map((title) => title.toUpperCase()), ...shown]
  const widths = fitted(
    head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))),
    terminal,
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cellOf(cell, column === row.length - 1 ? null : (widths[column] ?? 0), terminal))
      .join('  ')
  return all.map(line).join('\n')
}

function cellOf(cell: string, width: number | null, terminal: Terminal): string {
  if (width === null) return coloured(cell, terminal)
  const cut = cell.length > width ? `${cell.slice(0, width - 1)}…` : cell
  return coloured(cell, terminal, cut.padEnd(width))
}

/** Widths, with the widest reduced until a line fits; the last column is unchanged. */
function fitted(widths: readonly number[], { columns }: Terminal): readonly number[] {
  if (columns === null) return widths
  const found = [...widths]
  const total = (): number => found.reduce((sum, width) => sum + width, GAP * (found.length - 1))
  while (total() > columns) {
    const widest = found.slice(0, -1).reduce((best, width, at) => (width > (found[best] ?? 0) ? at : best), 0)
    if ((found[widest] ?? 0) <= WIDTH_MIN || found.length === 1) break
    found[widest] = Math.max(WIDTH_MIN, (found[widest] ?? 0) - 1)
  }
  return found
}
