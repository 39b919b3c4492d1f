/** export-figures - exports of lists as CSV that ended or are open, for the metrics */

/** How an export ended: `broken` if its client left, or its rows could not be read. */
export type ExportResult = 'complete' | 'cut' | 'broken'

/** A counter with a value for each of its labels. */
interface LabelledCounts {
  readonly labelled: string
  readonly help: string
  readonly labels: readonly string[]
  readonly values: ReadonlyMap<string, number>
}

/** A metric with one value. */
interface OpenFigure {
  readonly now: string
  readonly help: string
  readonly read: () => number
}

export class ExportFigures {
  /** By list and result, joined by a blank. */
  readonly #ended = new Map<string, number>()
  /** By list. */
  readonly #rows = new Map<string, number>()
  #open = 0

  /** An export of a list has begun. */
  begun(): void {
    this.#open += 1
  }

  /** An export has ended after so many rows. */
  ended(list: string, result: ExportResult, rows: number): void {
    this.#open -= 1
    this.#ended.set(`${list} ${result}`, (this.#ended.get(`${list} ${result}`) ?? 0) + 1)
    this.#rows.set(list, (this.#rows.get(list) ?? 0) + rows)
  }

  /** The metrics. */
  figures(): readonly (LabelledCounts | OpenFigure)[] {
    return [
      {
        labelled: 'exports',
        help: 'Counts exports as CSV that ended, by list and result.',
        labels: ['list', 'result'],
        values: this.#ended,
      },
      { labelled: 'export_rows', help: 'Counts rows of exports, by list.', labels: ['list'], values: this.#rows },
      { now: 'exports_open', help: 'Exports that are being sent.', read: () => this.#open },
    ]
  }
}
