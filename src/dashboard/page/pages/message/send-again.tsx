/** send-again - sends a message again to the recipients that were chosen: by default those who did not get it */
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import type { Message } from '../../../../../schemas/message.ts'
import { call } from '../../api/call.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { count } from '../../api/words.ts'
import { Button } from '../../parts/button.tsx'
import { StatusChip } from '../../parts/chip.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Form, Tick } from '../../parts/form.tsx'
import { say } from '../../parts/toast.tsx'

type Recipient = Message['recipients'][number]

/** Final states of recipients that did not get the message. */
const NOT_DELIVERED: readonly string[] = ['bounced', 'failed', 'suppressed', 'cancelled']
const SUPPRESSED = 'On the suppression list. Remove the address there first.'
const HINTS: Readonly<Record<string, string>> = {
  delivered: 'Already delivered.',
  accepted: 'Still being delivered. Sending again can deliver a second copy.',
  deferred: 'Still being retried. Sending again can deliver a second copy.',
  suppressed: SUPPRESSED,
}

interface SendAgainProps {
  readonly message: Message
  readonly serverId: string
}

/** The button; absent if the content cannot be sent again or the user may not send. */
export function SendAgain({ message, serverId }: SendAgainProps) {
  const [isAsking, setAsking] = useState(false)
  // The bytes of attachments are removed with the last outcome.
  if (!message.contentAvailable || message.attachmentCount > 0 || !may('write')) return null
  return (
    <>
      <Button icon="again" onPress={() => setAsking(true)}>
        Send again
      </Button>
      {isAsking && <ChooseRecipients message={message} serverId={serverId} onClose={() => setAsking(false)} />}
    </>
  )
}

function ChooseRecipients({ message, serverId, onClose }: SendAgainProps & { readonly onClose: () => void }) {
  const [, go] = useLocation()
  const { recipients, messageId, test, events } = message
  const hintOf = ({ recipient, status }: Recipient) =>
    events.some((one) => one.recipient === recipient && one.details.hard === true) ? SUPPRESSED : HINTS[status]
  const [chosen, choose] = useState<readonly string[]>(() =>
    recipients.filter(({ status }) => NOT_DELIVERED.includes(status)).map(({ recipient }) => recipient),
  )
  const turn = (address: string, isOn: boolean) =>
    choose(
      recipients.map(({ recipient }) => recipient).filter((one) => (one === address ? isOn : chosen.includes(one))),
    )
  const send = async () => {
    const path = serverApi(serverId, `/messages/${messageId}/send-again`)
    const sent = await call<{ messageId: string }>('POST', path, { body: { recipients: chosen } })
    onClose()
    say('Sent again. This is the new message.')
    go(serverPath(serverId, 'messages', sent.messageId))
  }
  return (
    <Dialog title="Send this message again?" onClose={onClose}>
      <p class="dialog-text">
        A new message with the same content goes to the recipients you select.
        {!test && ' This is live mail: they will receive it.'}
      </p>
      <Form
        act={chosen.length === 0 ? 'Select recipients' : `Send to ${count(chosen.length, 'recipient')}`}
        disabled={chosen.length === 0}
        onSend={send}
        side={<Button onPress={onClose}>Cancel</Button>}
      >
        <fieldset class="ticks chosen">
          <legend>Recipients</legend>
          {recipients.map((one) => (
            <Choice
              key={one.recipient}
              of={one}
              hint={hintOf(one)}
              isOn={chosen.includes(one.recipient)}
              onChange={(isOn) => turn(one.recipient, isOn)}
            />
          ))}
        </fieldset>
      </Form>
    </Dialog>
  )
}

interface ChoiceProps {
  readonly of: Recipient
  readonly hint: string | undefined
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
}

function Choice({ of: { recipient, kind, status }, hint, isOn, onChange }: ChoiceProps) {
  return (
    <div class="choice">
      <Tick label={`${recipient} (${kind})`} checked={isOn} onChange={onChange} {...(hint !== undefined && { hint })} />
      <StatusChip status={status} />
    </div>
  )
}
