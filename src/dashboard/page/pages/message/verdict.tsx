/** verdict - the outcome of a message in a sentence: who did not get it, and why */
import type { Message, MessageEvent } from '../../../../../schemas/message.ts'
import { count } from '../../api/words.ts'
import { Icon } from '../../parts/icon.tsx'
import { explainEvent } from './meaning.ts'

const LOST: readonly string[] = ['bounced', 'failed', 'suppressed']
const WAITING: readonly string[] = ['accepted', 'deferred']
/** Recipients that are named. */
const NAMED_MAX = 3

/** The sentence; nothing if all got it. */
export function Verdict({ message: { recipients, events } }: { message: Message }) {
  const lost = recipients.filter(({ status }) => LOST.includes(status))
  const waiting = recipients.filter(({ status }) => WAITING.includes(status))
  if (lost.length === 0 && waiting.length === 0) return null
  const all = recipients.length
  const of = (some: number) => (all === 1 ? 'The recipient' : `${some} of ${count(all, 'recipient')}`)
  return (
    <ul class={`verdict ${lost.length > 0 ? 'bounced' : 'deferred'}`}>
      {lost.slice(0, NAMED_MAX).map(({ recipient }, at) => (
        <li key={recipient}>
          <Icon name="bounced" />
          <p>
            {at === 0 && <b>{of(lost.length)} did not get it. </b>}
            <span class="from">{recipient}</span>: {reasonOf(events, recipient)}
          </p>
        </li>
      ))}
      {lost.length > NAMED_MAX && (
        <li>
          <Icon name="people" />
          <p>And {count(lost.length - NAMED_MAX, 'other')}, see the recipients below.</p>
        </li>
      )}
      {waiting.length > 0 && lost.length === 0 && (
        <li>
          <Icon name="clock" />
          <p>
            <b>{of(waiting.length)}</b> {waiting.length === 1 ? 'waits' : 'wait'} for delivery. It is retried for 48
            hours.
          </p>
        </li>
      )}
    </ul>
  )
}

/** Why one did not get it. */
function reasonOf(events: readonly MessageEvent[], recipient: string): string {
  const bounce = events.findLast((one) => one.event === 'bounced' && one.recipient === recipient)
  return (bounce && explainEvent(bounce)?.text) ?? 'It was not sent.'
}
