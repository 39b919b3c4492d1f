/** time - instants in the reader's time zone, with UTC as a tooltip */
import { formatAgo, formatInstantLong, formatInstantShort, formatMoment, formatUtc } from '../api/words.ts'

const FORMS = { short: formatInstantShort, long: formatInstantLong, moment: formatMoment, ago: formatAgo } as const

/** An instant. In: ISO 8601. */
export function Time({ at, as = 'short' }: { at: string; as?: keyof typeof FORMS }) {
  return (
    <time dateTime={at} title={formatUtc(at)}>
      {FORMS[as](at)}
    </time>
  )
}
