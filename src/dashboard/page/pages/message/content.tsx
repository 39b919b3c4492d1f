/**
 * content - the content of a message: rendered, as text, as source; live mail is read on request, which is recorded
 */
import { useState } from 'preact/hooks'
import type { MessageContent } from '../../../../../schemas/dashboard/content.ts'
import type { Message } from '../../../../../schemas/message.ts'
import { call } from '../../api/call.ts'
import { type Loaded, useLoad } from '../../api/load.ts'
import { serverApi } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { count } from '../../api/words.ts'
import { Button, Segments } from '../../parts/button.tsx'
import { Shown } from '../../parts/card.tsx'
import { Code, CopyValue } from '../../parts/copy.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { type Tab, Tabs } from '../../parts/tabs.tsx'
import { Checks } from './checks.tsx'
import { ContentGate, isContentHidden } from './content-gate.tsx'
import { MailFrame } from './mail-frame.tsx'

/** The card. */
export function MessageContentCard({ message, serverId }: { message: Message; serverId: string }) {
  const [isAsked, setAsked] = useState(message.test)
  const mayRead = may('write') || message.test
  const content = useLoad<MessageContent>(
    isAsked && message.contentAvailable && mayRead && !isContentHidden()
      ? (signal) => call('GET', serverApi(serverId, `/messages/${message.messageId}/content`), { signal })
      : null,
    [message.messageId, isAsked],
  )
  const gone = <p>Text and HTML are deleted after 30 days (7 on a test server). Status and events are kept.</p>
  return (
    <ContentGate
      gone={message.contentAvailable ? null : gone}
      mayRead={mayRead}
      asks={isAsked ? null : 'This is live mail'}
      onAsk={() => setAsked(true)}
    >
      <Views message={message} serverId={serverId} content={content} />
    </ContentGate>
  )
}

interface ViewsProps {
  readonly message: Message
  readonly serverId: string
  readonly content: Loaded<MessageContent>
}

function Views({ message, serverId, content }: ViewsProps) {
  const { html, text, links } = content.value ?? { html: null, text: null, links: [] }
  const tabs: Tab[] = [
    {
      name: 'Preview',
      view: () => (
        <Shown of={content}>{(shown) => <Preview message={message} serverId={serverId} content={shown} />}</Shown>
      ),
    },
  ]
  if (text !== null) tabs.push({ name: 'Text', view: () => <Code text={text} label="the text" /> })
  if (html !== null) tabs.push({ name: 'HTML', view: () => <Code text={html} label="the HTML" /> })
  if (links.length > 0) tabs.push({ name: 'Links', view: () => <Links links={links} /> })
  tabs.push({ name: 'Headers', view: () => <Headers message={message} /> })
  if (may('write')) tabs.push({ name: 'Checks', view: () => <Checks message={message} serverId={serverId} /> })
  if (areFilesKept(message)) tabs.push({ name: 'Raw', view: () => <Raw message={message} serverId={serverId} /> })
  tabs.push({ name: 'JSON', view: () => <Code text={JSON.stringify(message, null, 2)} label="the JSON" /> })
  return <Tabs label="Views of the content" tabs={tabs} />
}

function Preview({ message, serverId, content }: { message: Message; serverId: string; content: MessageContent }) {
  const [width, setWidth] = useState<'full' | 'phone'>('full')
  const [hasImages, setImages] = useState(false)
  const remote = countRemote(content.html ?? '')
  if (content.html === null) return <pre class="source plain">{content.text}</pre>
  return (
    <>
      <div class="tools">
        {remote > 0 && !hasImages && (
          <>
            <span>
              {count(remote, 'remote image')} {remote === 1 ? 'is' : 'are'} blocked
            </span>
            <Button kind="bare" onPress={() => setImages(true)}>
              Show images
            </Button>
          </>
        )}
        {remote > 0 && hasImages && <span>Images were loaded from the addresses in the message</span>}
        <Segments
          label="Width"
          options={[
            ['full', 'Desktop'],
            ['phone', '375 px'],
          ]}
          value={width}
          onChange={setWidth}
        />
      </div>
      <MailFrame
        serverId={serverId}
        id={message.messageId}
        isPhone={width === 'phone'}
        hasImages={hasImages}
        isTest={message.test}
      />
    </>
  )
}

/** Maximum characters read of a tag. */
const TAG_CHARS_MAX = 2_000

/** Images that a mail fetches from elsewhere, as far as its source shows them. */
function countRemote(html: string): number {
  const tags = html.split(/<img\b/i).slice(1)
  return tags.filter((tag) => /^[^>]*?\bsrc\s{0,9}=\s{0,9}["']?\s{0,9}https?:/i.test(tag.slice(0, TAG_CHARS_MAX)))
    .length
}

function Links({ links }: { links: readonly string[] }) {
  return (
    <ul class="links">
      {links.map((link) => (
        <li key={link}>
          <CopyValue value={link} label="the link" />
        </li>
      ))}
    </ul>
  )
}

const OPEN: readonly string[] = ['accepted', 'scheduled', 'deferred']

/** Whether attachments, and the message as it is sent, can be downloaded. */
export function areFilesKept({ contentAvailable, test, attachmentCount, source, recipients }: Message): boolean {
  const endsEarly = attachmentCount > 0 || source === 'smtp'
  return contentAvailable && (test || !endsEarly || recipients.some(({ status }) => OPEN.includes(status)))
}

function Raw({ message, serverId }: { message: Message; serverId: string }) {
  return (
    <p class="note first">
      <a href={`/dashboard/api${serverApi(serverId, `/messages/${message.messageId}/raw`)}`} download="message.eml">
        Download the message as it is sent
      </a>
    </p>
  )
}

function Headers({ message }: { message: Message }) {
  const { from, headers, messageIdHeader, recipients, subject } = message
  const list = (kind: string) =>
    recipients
      .filter((one) => one.kind === kind)
      .map(({ recipient }) => recipient)
      .join(', ')
  const all = [
    ['From', from.name === null ? from.email : `${from.name} <${from.email}>`],
    ['To', list('to')],
    ['Cc', list('cc')],
    ['Subject', subject ?? ''],
    ['Message-ID', messageIdHeader],
    ...Object.entries(headers),
  ] as const
  return <DefinitionList of={all.filter(([, value]) => value !== '')} />
}
