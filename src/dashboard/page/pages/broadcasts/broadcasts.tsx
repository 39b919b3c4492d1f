/** broadcasts - one message to many: progress, and cancelling */
import { useEffect } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Broadcast } from '../../../../../schemas/broadcast.ts'
import { call } from '../../api/call.ts'
import { useGetList } from '../../api/lists.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { formatNumber } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { Button, LinkButton } from '../../parts/button.tsx'
import { Card, Empty, Head, Shown } from '../../parts/card.tsx'
import { Chip, StatusChip } from '../../parts/chip.tsx'
import { CopyValue } from '../../parts/copy.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { ask } from '../../parts/dialog.tsx'
import { List } from '../../parts/list.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'
import { BroadcastOutcomes } from './outcome-tiles.tsx'

/** The page of all. */
export function BroadcastsPage({ serverId }: PageProps) {
  usePlace({ word: 'Broadcasts' })
  const list = useGetList<Broadcast>(serverApi(serverId, '/broadcasts'), 'broadcasts')
  return (
    <>
      <Head title="Broadcasts" meta="Submitted over the API, released at their stream’s pace." />
      <List
        label="Broadcasts"
        list={list}
        keyOf={({ broadcastId }) => broadcastId}
        columns={[
          { title: 'Status', cell: (broadcast) => <BroadcastState broadcast={broadcast} /> },
          {
            title: 'Subject',
            kind: 'grow',
            cell: ({ broadcastId, subject }) => (
              <Link href={serverPath(serverId, 'broadcasts', broadcastId)} class="row-link">
                <bdi>{subject ?? 'No subject'}</bdi>
              </Link>
            ),
          },
          { title: 'Progress', cell: (broadcast) => <Progress broadcast={broadcast} /> },
          { title: 'Time', kind: 'end', cell: ({ submittedAt }) => <Time at={submittedAt} /> },
        ]}
        empty={
          <Empty icon="broadcast" title="No broadcast yet">
            <p>
              POST /v1/broadcasts sends one message to as many as 50,000 recipients on a broadcast stream, each with
              their own words.
            </p>
            <LinkButton href={serverPath(serverId, 'streams')}>See streams</LinkButton>
          </Empty>
        }
      />
    </>
  )
}

function BroadcastState({ broadcast: { status, pausedAt, sendAt } }: { broadcast: Broadcast }) {
  const isOpen = status === 'accepted' || status === 'processing'
  if (isOpen && pausedAt !== null)
    return (
      <Chip tone="deferred" icon="pause">
        Paused
      </Chip>
    )
  const isScheduled = status === 'accepted' && sendAt !== null && Date.parse(sendAt) > Date.now()
  return <StatusChip status={isScheduled ? 'scheduled' : status} />
}

function Progress({ broadcast: { total, released, failed } }: { broadcast: Broadcast }) {
  return (
    <span class="progress">
      <progress value={released + failed} max={Math.max(1, total)} aria-label="Released" />
      <span class="num">
        {formatNumber(released)} of {formatNumber(total)}
      </span>
    </span>
  )
}

const AGAIN_MS = 3000

interface OrdersProps {
  readonly broadcast: Broadcast
  readonly onOrder: (name: string) => Promise<void>
  readonly onCancel: () => Promise<void>
}

function Orders({ broadcast, onOrder, onCancel }: OrdersProps) {
  return (
    <>
      {broadcast.pausedAt === null ? (
        <Button icon="pause" onPress={() => onOrder('pause')}>
          Pause
        </Button>
      ) : (
        <Button icon="play" onPress={() => onOrder('resume')}>
          Resume
        </Button>
      )}
      <Button kind="danger" icon="ban" onPress={onCancel}>
        Cancel
      </Button>
    </>
  )
}

/** The page of one. */
export function BroadcastPage({ serverId, id }: PageProps) {
  const path = serverApi(serverId, `/broadcasts/${id}`)
  const loaded = useLoad<Broadcast>((signal) => call('GET', path, { signal }), [path])
  const { value, reload, set } = loaded
  usePlace({ word: 'Broadcasts', href: serverPath(serverId, 'broadcasts') }, { word: value?.subject ?? 'Broadcast' })
  const isOpen = value !== null && value.completedAt === null
  useEffect(() => {
    if (!isOpen) return
    const timer = setInterval(() => !document.hidden && reload(), AGAIN_MS)
    return () => clearInterval(timer)
  }, [isOpen, reload])
  const order = async (name: string) => set(await call('POST', `${path}/${name}`))
  const cancel = async () => {
    const text = 'Messages not yet released are never sent. Messages already released are delivered.'
    if (!(await ask({ title: 'Cancel this broadcast?', text, act: 'Cancel broadcast', isDanger: true }))) return
    await order('cancel')
    say('The broadcast is cancelled')
  }
  return (
    <Shown
      of={loaded}
      lines={8}
      subject={{ word: 'Broadcast', back: { word: 'See broadcasts', href: serverPath(serverId, 'broadcasts') } }}
    >
      {(broadcast) => (
        <>
          <Head title={broadcast.subject ?? 'Broadcast'} meta={<BroadcastState broadcast={broadcast} />}>
            {isOpen && may('write') && <Orders broadcast={broadcast} onOrder={order} onCancel={cancel} />}
          </Head>
          <BroadcastOutcomes serverId={serverId} broadcast={broadcast} />
          <Card title="Progress">
            <div class="limit">
              <Progress broadcast={broadcast} />
            </div>
            <DefinitionList
              of={[
                ['Released', formatNumber(broadcast.released)],
                ['Failed', formatNumber(broadcast.failed)],
                ['Suppressed', `${formatNumber(broadcast.suppressed)}, dropped before the start`],
                ['From', broadcast.from],
                ['Tag', broadcast.tag],
                ['Submitted', <Time at={broadcast.submittedAt} as="long" key="in" />],
                ['Scheduled for', broadcast.sendAt && <Time at={broadcast.sendAt} as="long" key="at" />],
                ['Completed', broadcast.completedAt && <Time at={broadcast.completedAt} as="long" key="out" />],
                ['Broadcast', <CopyValue value={broadcast.broadcastId} label="the broadcast id" key="id" />],
              ]}
            />
            <footer class="more">
              <LinkButton href={`${serverPath(serverId, 'messages')}?broadcastId=${id}`}>See its messages</LinkButton>
            </footer>
          </Card>
        </>
      )}
    </Shown>
  )
}
