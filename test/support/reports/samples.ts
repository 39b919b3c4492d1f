/**
 * samples - over 200 aggregate reports as the large receivers write them, and broken ones, each with its exact content
 */
import { brokenSamples } from './broken.ts'
import { LAYOUTS, TLS_LAYOUTS } from './layouts.ts'
import { DAY_SECONDS, dmarcSample, type ReportSample, tlsSample } from './texts.ts'

const SAMPLES_A_LAYOUT = 7

/** All samples. `nowMs` is the day after the one that they are about. */
export function reportSamples(nowMs: number): ReportSample[] {
  const begin = Math.floor(nowMs / 1000 / DAY_SECONDS) * DAY_SECONDS - DAY_SECONDS
  const genuine = Array.from({ length: SAMPLES_A_LAYOUT }, (_, at) => [
    ...LAYOUTS.map((layout, index) => dmarcSample(layout, { seed: at * 100 + index, begin })),
    ...TLS_LAYOUTS.map((layout, index) => tlsSample(layout, { seed: at * 100 + 50 + index, begin })),
  ])
  return [...genuine.flat(), ...brokenSamples(begin)]
}
