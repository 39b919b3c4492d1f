/** first-steps - the first steps of a new account, until all are done or the list is dismissed */
import { useState } from 'preact/hooks'
import type { Checklist } from '../../../../../schemas/dashboard/account.ts'
import { serverPath } from '../../api/place.ts'
import { servers } from '../../api/session.ts'
import { Button, LinkButton } from '../../parts/button.tsx'
import { Card } from '../../parts/card.tsx'
import { Icon } from '../../parts/icon.tsx'

const HIDDEN = 'first-steps-hidden'

interface Step {
  readonly isDone: boolean
  readonly title: string
  readonly text: string
  readonly act: string
  readonly href: string
}

/** The card; empty if all steps are done. */
export function FirstSteps({ serverId, checklist }: { serverId: string; checklist: Checklist }) {
  const [isHidden, setHidden] = useState(() => localStorage.getItem(HIDDEN) !== null)
  if (isHidden) return null
  const steps = stepsOf(checklist, serverId)
  if (steps.every(({ isDone }) => isDone)) return null
  const hide = () => {
    localStorage.setItem(HIDDEN, 'yes')
    setHidden(true)
  }
  const done = steps.filter(({ isDone }) => isDone)
  const next = steps.findIndex(({ isDone }) => !isDone)
  return (
    <Card
      title={`First steps, ${done.length} of ${steps.length}`}
      side={
        <Button kind="bare" onPress={hide}>
          Hide
        </Button>
      }
    >
      <ol class="needs steps">
        {steps.map(({ isDone, title, text, act, href }, at) =>
          isDone ? null : (
            <li key={title}>
              <span class="node quiet" aria-hidden="true">
                {at + 1}
              </span>
              <div>
                <b>{title}</b>
                <p>{text}</p>
              </div>
              <LinkButton href={href} kind={at === next ? 'main' : 'plain'}>
                {act}
              </LinkButton>
            </li>
          ),
        )}
      </ol>
      {done.length > 0 && (
        <p class="note">
          <Icon name="check" size={14} /> Done: {done.map(({ title }) => title).join(', ')}
        </p>
      )}
    </Card>
  )
}

function stepsOf({ message, webhook, domain, liveKey, secondAdministrator }: Checklist, serverId: string): Step[] {
  const of = (mode: 'live' | 'test') => servers.value?.find((one) => one.mode === mode)?.serverId ?? serverId
  return [
    {
      isDone: message,
      title: 'Send the first message',
      text: 'Test servers deliver to no one, but their events are real.',
      act: 'Send one',
      href: serverPath(of('test'), 'start'),
    },
    {
      isDone: webhook,
      title: 'Receive events',
      text: 'A webhook notifies your application of the outcome of each message.',
      act: 'Add a webhook',
      href: serverPath(of('test'), 'webhooks'),
    },
    {
      isDone: domain,
      title: 'Verify your domain',
      text: 'Two DNS records, checked automatically.',
      act: 'Add a domain',
      href: '/domains',
    },
    {
      isDone: liveKey,
      title: 'Send live mail',
      text: 'With a key of a live server.',
      act: 'See its keys',
      href: serverPath(of('live'), 'keys'),
    },
    {
      isDone: secondAdministrator,
      title: 'Invite a second administrator',
      text: 'So that you can help each other if one of you is locked out.',
      act: 'Invite',
      href: '/people',
    },
  ]
}
