/** received - one received mail: verdicts and issue in words, how it looks, its headers, the mail as it came */
import { useState } from 'preact/hooks'
import type { ReceivedMessage } from '../../../../../schemas/inbound.ts'
import { call } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { formatDay, formatSize } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { Card, Head, Shown } from '../../parts/card.tsx'
import { Chip } from '../../parts/chip.tsx'
import { Code, CopyValue } from '../../parts/copy.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Icon } from '../../parts/icon.tsx'
import { type Tab, Tabs } from '../../parts/tabs.tsx'
import { Time } from '../../parts/time.tsx'
import { ContentGate } from '../message/content-gate.tsx'
import { MailFrame } from '../message/mail-frame.tsx'
import { DmarcChip, sentenceOfIssue, Verdicts } from './verdicts.tsx'

/** The page. */
export function ReceivedMessagePage({ serverId, id }: PageProps) {
  const path = serverApi(serverId, `/inbound/${id}`)
  const loaded = useLoad<ReceivedMessage>((signal) => call('GET', path, { signal }), [path])
  const [isAsked, setAsked] = useState(false)
  const content = useLoad<ReceivedMessage>(isAsked ? (signal) => call('GET', `${path}/content`, { signal }) : null, [
    isAsked,
  ])
  const title = content.value === null ? 'Received message' : (content.value.subject ?? 'No subject')
  usePlace({ word: 'Received', href: serverPath(serverId, 'received') }, { word: title })
  return (
    <Shown
      of={loaded}
      lines={10}
      subject={{
        word: 'Received message',
        back: { word: 'See received messages', href: serverPath(serverId, 'received') },
      }}
    >
      {(mail) => (
        <>
          <Head
            title={title}
            meta={
              <>
                <DmarcChip verdict={mail.authentication.dmarc} />
                <Sender mail={mail} content={content.value} />
                <Time at={mail.receivedAt} as="long" />
              </>
            }
          />
          <div class="columns">
            <div class="stack">
              {mail.parseIssue !== null && <Issue issue={mail.parseIssue} />}
              <Card title="Authentication">
                <Verdicts of={mail.authentication} />
              </Card>
              <ContentGate
                gone={mail.contentAvailable ? null : <p>When it arrived, and at which address, is still shown.</p>}
                mayRead={may('write')}
                asks={isAsked ? null : 'Sender, subject and content are hidden'}
                onAsk={() => setAsked(true)}
              >
                <Shown of={content}>
                  {(shown) => <Tabs label="Views of the content" tabs={viewsOf(shown, path, serverId)} />}
                </Shown>
              </ContentGate>
            </div>
            <About mail={content.value ?? mail} />
          </div>
        </>
      )}
    </Shown>
  )
}

/** The sender, if shown, because it is part of the content. */
function Sender({ mail, content }: { mail: ReceivedMessage; content: ReceivedMessage | null }) {
  const from = content?.from ?? mail.from
  if (from !== null)
    return <span class="from">From {from.name === null ? from.address : `${from.name} <${from.address}>`}</span>
  if (content !== null) return <span class="from">No From address</span>
  return (
    <span class="dim">
      {mail.contentAvailable ? 'Sender hidden until you show the content' : 'Sender no longer kept'}
    </span>
  )
}

function Issue({ issue }: { issue: NonNullable<ReceivedMessage['parseIssue']> }) {
  return (
    <Card
      title="Its form"
      side={
        <Chip tone="deferred" icon="alert">
          {issue}
        </Chip>
      }
    >
      <p class="note first">{sentenceOfIssue(issue)}</p>
    </Card>
  )
}

function About({ mail }: { mail: ReceivedMessage }) {
  const { inboundMessageId, envelopeRecipient, envelope, mailboxHash, sizeBytes, contentAvailable, contentExpiresAt } =
    mail
  return (
    <Card title="Details">
      <DefinitionList
        of={[
          ['Received', <CopyValue value={inboundMessageId} label="the id" key="id" />],
          ['Sent to', envelopeRecipient],
          ['After the +', mailboxHash],
          ['Sent by', envelope?.sender ?? null],
          ['Size', formatSize(sizeBytes)],
          ['Content', contentAvailable ? `kept until ${formatDay(contentExpiresAt)}` : 'no longer kept'],
        ]}
      />
    </Card>
  )
}

function viewsOf(mail: ReceivedMessage, path: string, serverId: string): Tab[] {
  const { html, text, headers, attachments, inboundMessageId } = mail
  return [
    ...(html === null
      ? []
      : [{ name: 'Preview', view: () => <MailFrame serverId={serverId} id={inboundMessageId} /> }]),
    ...(text === null ? [] : [{ name: 'Text', view: () => <Code text={text} label="the text" /> }]),
    ...(html === null ? [] : [{ name: 'HTML', view: () => <Code text={html} label="the HTML" /> }]),
    { name: 'Headers', view: () => <ReceivedHeaders headers={headers} /> },
    ...(attachments.length === 0 ? [] : [{ name: 'Attachments', view: () => <Files mail={mail} path={path} /> }]),
    { name: 'Raw', view: () => <Raw path={path} /> },
  ]
}

function Files({ mail, path }: { mail: ReceivedMessage; path: string }) {
  return (
    <ul class="files padded">
      {mail.attachments.map(({ position, name, contentType, size }) => (
        <li key={position}>
          <Icon name="clip" size={14} />
          <a href={`/dashboard/api${path}/attachments/${position}`} download={name ?? 'attachment'}>
            {name ?? 'without a name'}
          </a>
          <small>
            {contentType}, {formatSize(size)}
          </small>
        </li>
      ))}
    </ul>
  )
}

function Raw({ path }: { path: string }) {
  return (
    <p class="note first">
      <a href={`/dashboard/api${path}/raw`} download="message.eml">
        Download the raw message
      </a>
    </p>
  )
}

/** A field may occur more than once. */
function ReceivedHeaders({ headers }: Pick<ReceivedMessage, 'headers'>) {
  return (
    <dl class="pairs padded">
      {headers.flatMap(({ name, value }, at) => [
        <dt key={`${at} name`}>{name}</dt>,
        <dd key={`${at} value`}>{value}</dd>,
      ])}
    </dl>
  )
}
