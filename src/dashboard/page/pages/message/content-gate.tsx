/** content-gate - what stands before the content of a mail: why it is not shown, or that reading it is written down */
import type { ComponentChildren } from 'preact'
import { session } from '../../api/session.ts'
import { Button } from '../../parts/button.tsx'
import { Card, Empty } from '../../parts/card.tsx'

interface GateProps {
  /** What became of content that is no longer kept; null where it is. */
  readonly gone: ComponentChildren | null
  readonly mayRead: boolean
  /** Whose mail it is, for who has not asked for it yet; null once it is asked for, or needs no asking. */
  readonly asks: string | null
  readonly onAsk: () => void
  readonly children: ComponentChildren
}

/** The card, with the content in it once there is nothing before it. */
export function ContentGate({ gone, mayRead, asks, onAsk, children }: GateProps) {
  if (gone !== null) return <Closed title="The content is no longer kept">{gone}</Closed>
  if (isContentHidden())
    return (
      <Closed title="This account hides content">
        <p>An administrator can change that on the page of the account.</p>
      </Closed>
    )
  if (!mayRead)
    return (
      <Closed title="You cannot read the content of live mail">
        <p>An administrator can change your role.</p>
      </Closed>
    )
  if (asks !== null)
    return (
      <Card title="Content">
        <Empty icon="eye" title={asks}>
          <p>The audit log records that you read it, and when.</p>
          <Button onPress={onAsk}>Show the content</Button>
        </Empty>
      </Card>
    )
  return (
    <section class="card" aria-label="Content">
      {children}
    </section>
  )
}

/** Whether the account lets nobody read content here. */
export function isContentHidden(): boolean {
  return session.value?.account.hideContent === true
}

function Closed({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <Card title="Content">
      <Empty icon="eye-off" title={title}>
        {children}
      </Empty>
    </Card>
  )
}
