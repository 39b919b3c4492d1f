/** start - the first message: a form, and beside it the line of its time as it grows */
import { useState } from 'preact/hooks'
import type { Message } from '../../../../schemas/message.ts'
import { call } from '../api/call.ts'
import { useFeed, useLive } from '../api/live.ts'
import { useLoad } from '../api/load.ts'
import { serverApi, serverPath } from '../api/place.ts'
import { findServer, may, session } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import type { PageProps } from '../browser/page-props.ts'
import { LinkButton } from '../parts/button.tsx'
import { Card, Empty, Head, Shown } from '../parts/card.tsx'
import { Field, Form, Select } from '../parts/form.tsx'
import { TimeLine } from './message/time-line.tsx'

/** Addresses of the simulator, and their outcomes. */
const OUTCOMES = [
  ['delivered@simulator.test', 'is delivered'],
  ['deferred@simulator.test', 'is deferred twice, then delivered'],
  ['hardbounce@simulator.test', 'bounces for good'],
  ['softbounce@simulator.test', 'bounces, as the mailbox is full'],
  ['complaint@simulator.test', 'is complained about'],
] as const

/** From one look to the next, and while there is no feed. */
const REST_MS = 100
const AWAY_MS = 1_000

/** The page. */
export function StartPage({ serverId }: PageProps) {
  usePlace({ word: 'Overview', href: serverPath(serverId, 'overview') }, { word: 'Test message' })
  useFeed(serverId)
  const server = findServer(serverId)
  const isTest = server?.mode === 'test'
  const [sent, setSent] = useState<string | null>(null)
  return (
    <>
      <Head
        title="Send a test message"
        meta={isTest ? 'This test server delivers to no one.' : 'It goes to your own address.'}
      />
      <div class="columns even">
        <Card title="Message">
          {may('write') ? (
            <TestForm serverId={serverId} isTest={isTest} onSent={setSent} />
          ) : (
            <Empty icon="ban" title="Your role is read-only" />
          )}
        </Card>
        <Card title="What happens">
          {sent === null ? (
            <Empty icon="clock" title="Send it, and watch">
              <p>Acceptance, attempts and the answer of the receiving server appear here as they happen.</p>
            </Empty>
          ) : (
            <Grown serverId={serverId} id={sent} key={sent} />
          )}
        </Card>
      </div>
    </>
  )
}

interface TestFormProps {
  readonly serverId: string
  readonly isTest: boolean
  readonly onSent: (messageId: string) => void
}

function TestForm({ serverId, isTest, onSent }: TestFormProps) {
  const domain = findServer(serverId)?.sendingDomains[0]?.domain
  const own = session.value?.user.address ?? ''
  const [from, setFrom] = useState(isTest ? 'hello@simulator.test' : domain === undefined ? '' : `hello@${domain}`)
  const [to, setTo] = useState(isTest ? OUTCOMES[0][0] : own)
  const [subject, setSubject] = useState('Hello from Sendwright')
  const [text, setText] = useState('It works.')
  const send = async () => {
    const body = { from, to, subject, text }
    onSent((await call<{ messageId: string }>('POST', serverApi(serverId, '/test-message'), { body })).messageId)
  }
  return (
    <div class="inset">
      <Form act="Send" onSend={send}>
        <Field name="from" label="From" type="email" value={from} onChange={setFrom} />
        {isTest ? (
          <Select
            label="To"
            value={to}
            onChange={setTo}
            options={OUTCOMES.map(([one, word]) => [one, `${one} ${word}`])}
          />
        ) : (
          <Field name="to" label="To" value={to} onChange={setTo} hint="On a live server only your own address." />
        )}
        <Field name="subject" label="Subject" value={subject} onChange={setSubject} />
        <Field name="text" label="Text" lines={4} value={text} onChange={setText} />
      </Form>
    </div>
  )
}

function Grown({ serverId, id }: { serverId: string; id: string }) {
  const message = useLoad<Message>((signal) => call('GET', serverApi(serverId, `/messages/${id}`), { signal }), [id])
  const isOpen = message.value?.recipients.some(({ status }) => status === 'accepted' || status === 'deferred') ?? true
  const wants = ({ messageId }: { readonly messageId?: string }) => messageId === id
  useLive(serverId, { call: message.reload, wants, isOpen, restMs: REST_MS, awayMs: AWAY_MS })
  return (
    <Shown of={message} lines={4}>
      {(shown) => (
        <>
          <TimeLine message={shown} serverId={serverId} deliveries={[]} onReplayed={() => undefined} />
          <footer class="more">
            <LinkButton href={serverPath(serverId, 'messages', id)}>Open the message</LinkButton>
          </footer>
        </>
      )}
    </Shown>
  )
}
