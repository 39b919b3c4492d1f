/**
 * csv - a row of a CSV file (RFC 4180) that is safe to open in a spreadsheet
 *
 * A spreadsheet runs a text that begins with `=`, `+`, `-`, `@`, a tab or CR as a formula, and these texts come from
 * strangers: they get a leading `'`.
 *
 * Spec export.cell
 */

/** A cell: a text, a number, a yes or no, or nothing. */
export type Cell = string | number | boolean | null

const FORMULA = /^[=+\-@\t\r]/
/** Quoted beyond RFC 4180: spaces at an end, which some readers trim. */
const QUOTED = /[",\r\n]|^[ \t]|[ \t]$/

/** A row with its line end. */
export function formatCsvRow(cells: readonly Cell[]): string {
  return `${cells.map(formatCell).join(',')}\r\n`
}

function formatCell(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return String(cell)
  const text = FORMULA.test(cell) ? `'${cell}` : cell
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
