/** received - one received mail: verdicts and issue in words */
import type { ReceivedMessage } from '../../../../../schemas/inbound.ts'
import { call } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { formatDay, formatSize } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { Card, Head, Shown } from '../../parts/card.tsx'
import { Chip } from '../../parts/chip.tsx'
import { CopyValue } from '../../parts/copy.tsx'
import { Pairs } from '../../parts/pairs.tsx'
import { Time } from '../../parts/time.tsx'
import { DmarcChip, sentenceOfIssue, Verdicts } from './verdicts.tsx'

/** The page. */
export function ReceivedMessagePage({ serverId, id }: PageProps) {
  const path = serverApi(serverId, `/inbound/${id}`)
  const loaded = useLoad<ReceivedMessage>((signal) => call('GET', path, { signal }), [path])
  usePlace(
    { word: 'Received', href: serverPath(serverId, 'received') },
    { word: loaded.value?.subject ?? 'Received mail' },
  )
  return (
    <Shown of={loaded} lines={10}>
      {(mail) => (
        <>
          <Head
            title={mail.subject ?? 'No subject'}
            meta={
              <>
                <DmarcChip verdict={mail.authentication.dmarc} />
                {mail.from !== null && <span class="from">From {mail.from.address}</span>}
                <Time at={mail.receivedAt} as="long" />
              </>
            }
          />
          <div class="columns">
            <div class="stack">
              {mail.parseIssue !== null && <Issue issue={mail.parseIssue} />}
              <Card title="Who sent it">
                <Verdicts of={mail.authentication} />
              </Card>
            </div>
            <About mail={mail} />
          </div>
        </>
      )}
    </Shown>
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
      <Pairs
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
