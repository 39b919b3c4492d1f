/** content-figures - operations on the content store, for the metrics */

/** Counters of an operation on the content store. */
export interface ContentActEnd {
  readonly home: string
  readonly act: string
  readonly result: string
  readonly ms: number
  readonly bytes: number
  readonly objects: number
}

/** A counter with a value for each of its labels. */
interface LabelledCounts {
  readonly labelled: string
  readonly help: string
  readonly labels: readonly string[]
  readonly values: ReadonlyMap<string, number>
}

const OF = ['home', 'act'] as const

export class ContentFigures {
  /** By home, act and result, joined by a blank. */
  readonly #acts = new Map<string, number>()
  /** By home and act. */
  readonly #objects = new Map<string, number>()
  readonly #bytes = new Map<string, number>()
  readonly #seconds = new Map<string, number>()

  /** An operation has ended. */
  done({ home, act, result, ms, bytes, objects }: ContentActEnd): void {
    const key = `${home} ${act}`
    addTo(this.#acts, `${key} ${result}`, 1)
    addTo(this.#objects, key, objects)
    addTo(this.#bytes, key, bytes)
    addTo(this.#seconds, key, ms / 1000)
  }

  /** The metrics. */
  figures(): readonly LabelledCounts[] {
    const of = (labelled: string, help: string, values: ReadonlyMap<string, number>) => ({ labelled, help, values })
    return [
      {
        ...of('content_acts', 'Counts operations of the content store, by result.', this.#acts),
        labels: [...OF, 'result'],
      },
      {
        ...of(
          'content_objects',
          'Counts objects written to, read from and removed from the content store.',
          this.#objects,
        ),
        labels: OF,
      },
      { ...of('content_bytes', 'Counts bytes written to and read from the content store.', this.#bytes), labels: OF },
      {
        ...of('content_seconds', 'Counts seconds spent in operations of the content store.', this.#seconds),
        labels: OF,
      },
    ]
  }
}

function addTo(map: Map<string, number>, key: string, by: number): void {
  map.set(key, (map.get(key) ?? 0) + by)
}
