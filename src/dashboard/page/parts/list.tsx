/** list - a paged table without a total, because counting a million rows costs too much */
import type { ComponentChildren } from 'preact'
import type { LoadedList } from '../api/load.ts'
import { Button } from './button.tsx'
import { Fault, Skeleton } from './card.tsx'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  /** Hidden on a phone, shown there with its title, aligned right, growing, or truncated. */
  readonly kind?: 'wide' | 'titled' | 'end' | 'grow' | 'clip'
}

interface ListProps<Row> {
  readonly label: string
  readonly list: LoadedList<Row>
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string
  /** In place of no rows. */
  readonly empty: ComponentChildren
}

/** A list. */
export function List<Row>({ label, list, columns, keyOf, empty }: ListProps<Row>) {
  const { value, error, reload, more, isLoadingMore } = list
  return (
    <section class="card" aria-label={label}>
      {error !== null && <Fault error={error} onRetry={reload} />}
      {value === null && error === null && <Skeleton lines={8} />}
      {value !== null && value.rows.length === 0 && more === null && empty}
      {value !== null && value.rows.length > 0 && <Rows {...{ label, columns, keyOf, rows: value.rows }} />}
      {value !== null && more !== null && (
        <footer class="more">
          {value.rows.length === 0 && <p>No match in the newest 10,000. Older ones may match.</p>}
          <Button onPress={more} disabled={isLoadingMore}>
            {isLoadingMore ? 'Loading …' : 'Show more'}
          </Button>
        </footer>
      )}
    </section>
  )
}

type RowsProps<Row> = Pick<ListProps<Row>, 'label' | 'columns' | 'keyOf'> & { readonly rows: readonly Row[] }

/** The rows of a list alone. */
export function Rows<Row>({ label, columns, keyOf, rows }: RowsProps<Row>) {
  return (
    <table class="rows" aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ title, kind }) => (
            <th key={title} scope="col" class={kind}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, cell, kind }) => (
              <td key={title} class={kind} data-title={title}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
