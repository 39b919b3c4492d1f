/**
 * content-gate - the notice before the content of a mail, with the reason why it is hidden, or a note that reading is
 * recorded
 */
import type { ComponentChildren } from 'preact'
import { session } from '../../api/session.ts'
import { Button } from '../../parts/button.tsx'
import { Card, Empty } from '../../parts/card.tsx'

interface GateProps {
  /** The notice for expired content; null if it is stored. */
  readonly gone: ComponentChildren | null
  readonly mayRead: boolean
  /** The notice before reading is confirmed; null once confirmed, or if not needed. */
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

/** Whether the account hides all content here. */
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
