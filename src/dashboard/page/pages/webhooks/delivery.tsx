/** delivery - one delivery: request, answer and replay */
import { Link } from 'wouter-preact'
import type { Delivery } from '../../../../../schemas/webhook.ts'
import { call } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { Button } from '../../parts/button.tsx'
import { Shown } from '../../parts/card.tsx'
import { StatusChip } from '../../parts/chip.tsx'
import { Code, CopyValue } from '../../parts/copy.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'

type DeliveryShown = Delivery & { readonly body: object | null; readonly lastResponse?: string | null }

interface DeliveryDialogProps {
  /** Path of the delivery in the interface. */
  readonly path: string
  readonly serverId: string
  readonly onClose: () => void
  readonly onReplayed: () => void
}

/** The dialog. */
export function DeliveryDialog({ path, serverId, onClose, onReplayed }: DeliveryDialogProps) {
  const loaded = useLoad<DeliveryShown>((signal) => call('GET', path, { signal }), [path])
  const replay = async () => {
    await call('POST', `${path}/replay`)
    say('Queued again')
    onClose()
    onReplayed()
  }
  return (
    <Dialog title="Delivery" onClose={onClose} isWide>
      <Shown of={loaded}>
        {(delivery) => (
          <>
            <Facts delivery={delivery} serverId={serverId} />
            <h3>Headers</h3>
            <Code text={headersOf(delivery)} label="the headers" />
            <h3>Body</h3>
            {delivery.body === null ? (
              <p class="dim">Its event is no longer kept.</p>
            ) : (
              <Code text={JSON.stringify(delivery.body, null, 2)} label="the body" />
            )}
            {delivery.lastResponse != null && delivery.lastResponse !== '' && (
              <>
                <h3>Last answer</h3>
                <Code text={delivery.lastResponse} label="the answer" />
              </>
            )}
            {may('write') && (
              <footer>
                <Button kind="main" icon="again" onPress={replay}>
                  Replay
                </Button>
              </footer>
            )}
          </>
        )}
      </Shown>
    </Dialog>
  )
}

function Facts({ delivery, serverId }: { delivery: DeliveryShown; serverId: string }) {
  const { deliveryId, status, attempts, lastStatusCode, lastError, nextAttemptAt, deliveredAt, messageId } = delivery
  return (
    <DefinitionList
      of={[
        ['Status', <StatusChip status={status} key="status" />],
        ['Delivery', <CopyValue value={deliveryId} label="the delivery id" key="id" />],
        [
          'Message',
          messageId === null ? null : (
            <Link href={serverPath(serverId, 'messages', messageId)} key="m">
              Open the message
            </Link>
          ),
        ],
        ['Attempts', attempts],
        ['Answer', lastStatusCode ?? lastError],
        ['Next', nextAttemptAt === null ? null : <Time at={nextAttemptAt} as="ago" key="next" />],
        ['Delivered', deliveredAt === null ? null : <Time at={deliveredAt} as="long" key="at" />],
      ]}
    />
  )
}

/** The headers of every post; the signature is made again for each attempt. */
function headersOf({ deliveryId, event }: DeliveryShown): string {
  return [
    'Content-Type: application/json',
    'Service-Signature: t=<unix seconds>,v1=<hex>',
    `Service-Event: ${event}`,
    `Service-Delivery-Id: ${deliveryId}`,
    'User-Agent: Service-Webhooks/1',
  ].join('\n')
}
