/** chip - a state as a coloured word with its picture: never the colour alone */
import type { ComponentChildren } from 'preact'
import { formatStatus } from '../api/words.ts'
import { Icon, type IconName } from './icon.tsx'

/** Colours that states have. */
export type Tone = 'accepted' | 'delivered' | 'deferred' | 'bounced' | 'spam_complaint' | 'quiet' | 'test'

const LOOKS: Readonly<Record<string, readonly [tone: Tone, icon: IconName]>> = {
  accepted: ['accepted', 'accepted'],
  scheduled: ['accepted', 'clock'],
  delivered: ['delivered', 'check'],
  deferred: ['deferred', 'clock'],
  bounced: ['bounced', 'bounced'],
  failed: ['bounced', 'bounced'],
  dead: ['bounced', 'bounced'],
  spam_complaint: ['spam_complaint', 'flag'],
  suppressed: ['quiet', 'shield'],
  cancelled: ['quiet', 'ban'],
  unsubscribed: ['quiet', 'unsubscribed'],
  mixed: ['quiet', 'people'],
  pending: ['deferred', 'clock'],
  processing: ['accepted', 'send'],
  completed: ['delivered', 'check'],
  inbound: ['accepted', 'inbox'],
  hard_bounce: ['bounced', 'bounced'],
  unsubscribe: ['quiet', 'unsubscribed'],
  manual: ['quiet', 'shield'],
  cap_warning: ['deferred', 'alert'],
  cap_reached: ['bounced', 'alert'],
  done: ['delivered', 'check'],
  active: ['delivered', 'check'],
  paused: ['deferred', 'pause'],
  closed: ['quiet', 'ban'],
  ok: ['delivered', 'check'],
  warning: ['deferred', 'alert'],
  pass: ['delivered', 'check'],
  fail: ['bounced', 'bounced'],
  softfail: ['deferred', 'alert'],
  missing: ['bounced', 'bounced'],
  mismatch: ['bounced', 'bounced'],
  dns_error: ['deferred', 'alert'],
}

/** How a status looks. */
export function lookOf(status: string): { tone: Tone; icon: IconName } {
  const [tone, icon] = LOOKS[status] ?? ['quiet', 'info']
  return { tone, icon }
}

/** A chip of any tone. */
export function Chip({
  tone = 'quiet',
  icon,
  children,
}: {
  tone?: Tone
  icon?: IconName
  children: ComponentChildren
}) {
  return (
    <span class={`chip ${tone}`}>
      {icon && <Icon name={icon} size={13} />}
      {children}
    </span>
  )
}

/** A status, an event or a verdict, with its own label or the given text, such as a count. */
export function StatusChip({ status, children }: { status: string; children?: ComponentChildren }) {
  const { tone, icon } = lookOf(status)
  return (
    <Chip tone={tone} icon={icon}>
      {children ?? formatStatus(status)}
    </Chip>
  )
}
