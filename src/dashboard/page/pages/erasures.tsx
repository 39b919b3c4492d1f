/** erasures - one person's data, taken out of every server of the account; it cannot be undone */
import { useState } from 'preact/hooks'
import type { Erasure } from '../../../../schemas/erasure.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { usePoll } from '../api/poll.ts'
import { count } from '../api/words.ts'
import { usePlace } from '../browser/crumbs.ts'
import { Card, Empty, Head, Shown } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { CopyValue } from '../parts/copy.tsx'
import { DefinitionList } from '../parts/definition-list.tsx'
import { ask } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/form.tsx'
import { Time } from '../parts/time.tsx'

const AGAIN_MS = 2000

/** The page. */
export function ErasuresPage() {
  usePlace({ word: 'Erasures' })
  const [id, setId] = useState<string | null>(null)
  return (
    <>
      <Head
        title="Erasures"
        meta="For people who request erasure: content is deleted and the address is replaced by a pseudonym."
      />
      <div class="columns even">
        <Card title="Erase a person">
          <EraseForm onMade={setId} />
        </Card>
        <Card title="Result">
          {id === null ? (
            <Empty icon="erased" title="No erasures yet">
              <p>An erasure takes less than a minute and is listed for 30 days.</p>
            </Empty>
          ) : (
            <Ordered id={id} key={id} />
          )}
        </Card>
      </div>
    </>
  )
}

function EraseForm({ onMade }: { onMade: (erasureId: string) => void }) {
  const [address, setAddress] = useState('')
  const send = async () => {
    const text = 'The content of all mail to and from this address is deleted on every server. This cannot be undone.'
    if (!(await ask({ title: `Erase ${address}?`, text, act: 'Erase', isDanger: true }))) return
    onMade((await call<Erasure>('POST', '/erasures', { body: { address } })).erasureId)
  }
  return (
    <div class="inset">
      <Form act="Erase" onSend={send} isDanger>
        <Field
          name="address"
          label="Address"
          type="email"
          value={address}
          onChange={setAddress}
          hint="Later mail to or from it is sent and received as before."
        />
      </Form>
    </div>
  )
}

function Ordered({ id }: { id: string }) {
  const erasure = useLoad<Erasure>((signal) => call('GET', `/erasures/${id}`, { signal }), [id])
  usePoll(erasure.value?.status === 'pending', erasure.reload, AGAIN_MS)
  return (
    <Shown of={erasure}>
      {({ erasureId, status, createdAt, completedAt, pseudonym, messages, receivedMessages }) => (
        <DefinitionList
          of={[
            ['State', <StatusChip status={status} key="status" />],
            ['Ordered', <Time at={createdAt} as="long" key="in" />],
            ['Done', completedAt && <Time at={completedAt} as="long" key="out" />],
            ['Sent', messages === null ? null : `${count(messages, 'message')} lost their content`],
            ['Received', receivedMessages === null ? null : `${count(receivedMessages, 'message')} lost their content`],
            ['Pseudonym', pseudonym],
            ['Erasure', <CopyValue value={erasureId} label="the erasure id" key="id" />],
          ]}
        />
      )}
    </Shown>
  )
}
