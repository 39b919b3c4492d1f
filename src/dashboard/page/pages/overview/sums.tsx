/** sums - the sums of a period, compared with the period before; each leads to its messages */
import { Link } from 'wouter-preact'
import { formatNumber, formatShare } from '../../api/words.ts'
import type { Tone } from '../../parts/chip.tsx'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { BRAKE } from './chart-words.ts'
import { type Figures, type Rate, ratesOf } from './figures.ts'

interface SumsProps {
  readonly now: Figures
  readonly before: Figures
  /** The length of both. */
  readonly word: string
  /** The messages of the period with further filters. */
  readonly hrefOf: (filters: Readonly<Record<string, string>>) => string
}

const RATES: readonly { rate: Rate; tone: Tone; icon: IconName; word: string; event: string }[] = [
  { rate: 'delivered', tone: 'delivered', icon: 'check', word: 'Delivered', event: 'delivered' },
  { rate: 'deferred', tone: 'deferred', icon: 'clock', word: 'Deferred', event: 'deferred' },
  { rate: 'bounced', tone: 'bounced', icon: 'bounced', word: 'Bounced', event: 'bounced' },
  { rate: 'complained', tone: 'spam_complaint', icon: 'flag', word: 'Complaints', event: 'spam_complaint' },
]

/** A tile for each. */
export function Sums({ now, before, word, hrefOf }: SumsProps) {
  const rates = ratesOf(now)
  const old = ratesOf(before)
  const none = `No mail in the previous ${word}`
  const isAbove = (rates.complained ?? 0) > BRAKE
  return (
    <dl class="figures">
      <Sum tone="accepted" icon="send" word="Accepted" value={formatNumber(now.accepted)} href={hrefOf({})}>
        {before.accepted === 0 ? none : `${formatNumber(before.accepted)} in the previous ${word}`}
      </Sum>
      {RATES.map(({ rate, tone, icon, word: name, event }) => (
        <Sum
          key={rate}
          {...{ tone, icon }}
          word={name}
          value={formatShare(rates[rate])}
          count={now[rate]}
          href={hrefOf({ event })}
        >
          {rate === 'complained' && isAbove
            ? `Above the limit of ${formatShare(BRAKE)}`
            : old[rate] === null
              ? none
              : `${formatShare(old[rate])} in the previous ${word}`}
        </Sum>
      ))}
    </dl>
  )
}

interface SumProps {
  readonly tone: Tone
  readonly icon: IconName
  readonly word: string
  readonly value: string
  readonly count?: number
  readonly href: string
  readonly children: string
}

function Sum({ tone, icon, word, value, count, href, children }: SumProps) {
  return (
    <div class={`card ${tone}`}>
      <dt>
        <Icon name={icon} />
        <Link href={href} class="row-link">
          {word}
        </Link>
      </dt>
      <dd class="num">
        {value}
        {count !== undefined && <small>{formatNumber(count)}</small>}
      </dd>
      <dd class="than">{children}</dd>
    </div>
  )
}
