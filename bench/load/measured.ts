/** measured - the result of one run of a load */

/** The result of a run. */
export interface Measured {
  /** Answers of 200. */
  readonly accepted: number
  /** Other answers. */
  readonly refused: number
  /** Connections that failed, and answers that did not come. */
  readonly broken: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}
