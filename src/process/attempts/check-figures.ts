/** check-figures - results of the last checks of the installation, for the metrics */

/** A finding of `doctor`. */
interface FindingOnPage {
  readonly name: string
  readonly status: string
}

/** A blocklist: its addresses of ours, or null if its answers cannot be used. */
interface BlocklistOnPage {
  readonly list: string
  readonly listed: number | null
}

/** A metric with a value for each of its labels. */
interface LabelledRows {
  readonly each: string
  readonly help: string
  readonly labels: readonly string[]
  readonly rows: () => Iterable<readonly [labels: readonly string[], value: number]>
}

export class CheckFigures {
  /** By name and status, joined by a blank. */
  #findings = new Map<string, number>()
  #blocklists: readonly BlocklistOnPage[] = []

  /** `doctor` has run its checks. */
  examined(findings: readonly FindingOnPage[]): void {
    this.#findings = new Map()
    for (const { name, status } of findings) {
      const key = `${name} ${status}`
      this.#findings.set(key, (this.#findings.get(key) ?? 0) + 1)
    }
  }

  /** The blocklists were asked. */
  blocklists(results: readonly BlocklistOnPage[]): void {
    this.#blocklists = results
  }

  /** The metrics, each with its labels. */
  figures(): readonly LabelledRows[] {
    return [
      {
        each: 'doctor_findings',
        help: 'Results of the last checks of doctor that this process ran, by name and status.',
        labels: ['name', 'status'],
        rows: () => [...this.#findings].map(([key, value]) => [key.split(' '), value] as const),
      },
      {
        each: 'blocklist_listed',
        help: 'Sending addresses on a blocklist, by list.',
        labels: ['list'],
        rows: () => this.#blocklists.map(({ list, listed }) => [[list], listed ?? 0] as const),
      },
      {
        each: 'blocklist_usable',
        help: 'Whether the answers of a blocklist can be used (1) or not (0), by list.',
        labels: ['list'],
        rows: () => this.#blocklists.map(({ list, listed }) => [[list], listed === null ? 0 : 1] as const),
      },
    ]
  }
}
