/** table - rows of text in columns, for a terminal. */

/**
 * Lays out rows under a head. The last column is never padded, so that a long value can be copied.
 * @param rows each as long as `head`
 */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head.map((title) => title.toUpperCase()), ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join('  ')
  return all.map(line).join('\n')
}
