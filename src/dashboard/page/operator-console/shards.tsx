/** shards - the owners of shards, and their pending work */
import type { ShardList } from '../../../../schemas/operator/cluster.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { Button } from '../parts/button.tsx'
import { Card, Head, Shown } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { Rows } from '../parts/list.tsx'

const TONES = { owned: 'delivered', free: 'deferred', moving: 'deferred', torn: 'bounced', away: 'bounced' } as const

/** The page. */
export function ShardsPage() {
  const list = useLoad<ShardList>((signal) => call('GET', '/shards', { signal }), [])
  return (
    <>
      <Head title="Shards" meta="A shard has one owner at a time; a free one is taken within seconds.">
        <Button icon="refresh" onPress={list.reload}>
          Refresh
        </Button>
      </Head>
      <Shown of={list} lines={8}>
        {({ workers, shards }) => (
          <>
            <Card title="Processes">
              <Rows
                label="Processes"
                rows={workers}
                keyOf={({ worker }) => worker}
                columns={[
                  { title: 'Process', kind: 'grow', cell: ({ host, pid }) => <b class="name">{`${host}, ${pid}`}</b> },
                  { title: 'Runs', cell: ({ roles }) => roles.join(', ') },
                  { title: 'State', cell: (one) => <WorkerState worker={one} /> },
                  { title: 'Shards', kind: 'end', cell: ({ shards: owned }) => owned },
                ]}
              />
            </Card>
            <Card title="Shards" side={shards.length}>
              <ol class="shards">
                {shards.map(({ shard, state, owner, waiting }) => (
                  <li
                    key={shard}
                    class={TONES[state]}
                    title={`${state}${owner === null ? '' : ` by ${owner}`}, ${waiting} waiting`}
                  >
                    <span>
                      {shard}
                      <span class="unseen"> is {state}</span>
                    </span>
                  </li>
                ))}
              </ol>
            </Card>
          </>
        )}
      </Shown>
    </>
  )
}

function WorkerState({ worker: { isAlive, isLeaving } }: { worker: ShardList['workers'][number] }) {
  if (!isAlive)
    return (
      <Chip tone="bounced" icon="bounced">
        Gone
      </Chip>
    )
  return isLeaving ? (
    <Chip tone="deferred" icon="leave">
      Leaving
    </Chip>
  ) : (
    <Chip tone="delivered" icon="check">
      Alive
    </Chip>
  )
}
