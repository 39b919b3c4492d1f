/** account - one account in the operator's console: its statistics, its limits, and the actions on it */
import { Link } from 'wouter-preact'
import type { AccountDetail } from '../../../../schemas/account.ts'
import type { Server } from '../../../../schemas/server.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { formatNumber, formatShare } from '../api/words.ts'
import { Button } from '../parts/button.tsx'
import { Card, Empty, Head, Shown } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { CopyValue } from '../parts/copy.tsx'
import { DefinitionList } from '../parts/definition-list.tsx'
import { Limits } from '../parts/limits.tsx'
import { RetentionForm } from '../parts/retention.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'
import { order } from './note.tsx'

/** The page. */
export function AccountAtDesk({ id }: { id: string }) {
  const loaded = useLoad<AccountDetail>((signal) => call('GET', `/accounts/${id}`, { signal }), [id])
  return (
    <Shown of={loaded} lines={8} subject={{ word: 'Account', back: { word: 'See accounts', href: '/accounts' } }}>
      {(account) => (
        <>
          <Head title={account.name} meta={<StatusChip status={account.status} />}>
            <Orders account={account} onDone={loaded.reload} />
          </Head>
          <div class="columns even">
            <div class="stack">
              <Application account={account} />
              <Last24Hours account={account} />
              <About account={account} />
            </div>
            <div class="stack">
              <Card title="Limits">
                <Limits limits={account.limits} />
              </Card>
              <Servers id={id} />
              <Card title="Retention">
                <div class="inset">
                  <RetentionForm path={`/accounts/${id}`} />
                </div>
              </Card>
            </div>
          </div>
        </>
      )}
    </Shown>
  )
}

/**
 * Caps that approvals offer. The default is the smallest one above the requested volume; beyond all caps the operator
 * decides.
 */
const CAPS = [10_000, 50_000, 250_000, 1_000_000] as const

function capFor({ application }: AccountDetail): string {
  if (application === null) return String(CAPS[0])
  return String(CAPS.find((cap) => cap >= application.monthlyVolume) ?? '')
}

function Orders({ account, onDone }: { account: AccountDetail; onDone: () => void }) {
  const { accountId, name, status } = account
  const to = (act: string, done: string) => async (body: Record<string, unknown>) => {
    await call('POST', `/accounts/${accountId}/${act}`, { body })
    say(done)
    onDone()
  }
  const approve = () =>
    order({
      title: `Approve ${name}`,
      act: 'Approve',
      fields: { monthlyCap: ['Emails a month', capFor(account)] },
      send: to('approve', `${name} is approved`),
    })
  const caps = () =>
    order({
      title: `Limits of ${name}`,
      act: 'Save',
      fields: {
        approvedCap: ['Approved cap', String(account.approvedCap)],
        monthlyCap: ['Monthly cap', String(account.monthlyCap)],
        highestCap: ['Highest cap', String(account.highestCap ?? '')],
        serverLimit: ['Servers', String(account.serverLimit)],
      },
      send: async (body) => {
        await call('PATCH', `/accounts/${accountId}`, { body })
        say('Saved')
        onDone()
      },
    })
  const simple = (act: 'pause' | 'resume' | 'close', word: string, text: string) => () =>
    order({ title: `${word} ${name}`, text, act: word, isDanger: act !== 'resume', send: to(act, 'Done') })
  return (
    <>
      {status === 'pending' && (
        <Button kind="main" icon="check" onPress={approve}>
          Approve
        </Button>
      )}
      {status === 'active' && (
        <Button icon="pause" onPress={simple('pause', 'Pause', 'Its mail is refused; what was accepted is held.')}>
          Pause
        </Button>
      )}
      {status === 'paused' && (
        <Button
          icon="play"
          onPress={simple('resume', 'Resume', 'The account can send again, and held mail is delivered.')}
        >
          Resume
        </Button>
      )}
      {status !== 'closed' && (
        <>
          <Button onPress={caps}>Limits</Button>
          <Button
            kind="danger"
            onPress={simple('close', 'Close', 'This cannot be undone. Accepted mail is still delivered.')}
          >
            Close
          </Button>
        </>
      )}
    </>
  )
}

/** The account's application; empty if there is none and none is required. */
function Application({ account: { application, status } }: { account: AccountDetail }) {
  if (application === null && status !== 'pending') return null
  return (
    <Card title="Application" side={application !== null && <Time at={application.at} as="long" />}>
      {application === null ? (
        <Empty icon="text" title="It has not applied yet">
          <p>An administrator can do so on the Account page.</p>
        </Empty>
      ) : (
        <DefinitionList
          of={[
            ['Volume', `${formatNumber(application.monthlyVolume)} emails a month`],
            ['Purpose', application.purpose],
            ['Website', application.website],
          ]}
        />
      )}
    </Card>
  )
}

function Last24Hours({ account: { last24Hours: figures } }: { account: AccountDetail }) {
  return (
    <Card title="Last 24 hours, live">
      <DefinitionList
        of={[
          ['Delivered', formatNumber(figures.delivered)],
          ['Bounced', `${formatNumber(figures.bounced)}, ${formatShare(figures.bounceRate)}`],
          ['Complaints', `${formatNumber(figures.complained)}, ${formatShare(figures.complaintRate)}`],
        ]}
      />
    </Card>
  )
}

function About({ account }: { account: AccountDetail }) {
  const { accountId, createdAt, administrators, held, subscriptionActive, approvedCap, highestCap, serverLimit } =
    account
  return (
    <Card title="Details">
      <DefinitionList
        of={[
          ['Account', <CopyValue value={accountId} label="the account id" key="id" />],
          ['Created', <Time at={createdAt} as="long" key="since" />],
          ['Addresses', administrators.length === 0 ? 'none' : administrators.join(', ')],
          ['Held', held ? 'accepted mail is held' : 'no'],
          ['Subscription', subscriptionActive ? 'active' : 'none'],
          ['Approved cap', formatNumber(approvedCap)],
          [
            'Highest cap',
            highestCap === null ? `${formatNumber(approvedCap * 10)} (ten times)` : formatNumber(highestCap),
          ],
          ['Servers', `up to ${formatNumber(serverLimit)}`],
        ]}
      />
    </Card>
  )
}

function Servers({ id }: { id: string }) {
  const servers = useLoad<{ servers: Server[] }>(
    (signal) => call('GET', `/accounts/${id}/servers?limit=100`, { signal }),
    [id],
  )
  return (
    <Card title="Servers">
      <Shown of={servers} lines={3}>
        {({ servers: rows }) =>
          rows.length === 0 ? (
            <Empty icon="server" title="It has no server" />
          ) : (
            <ul class="needs">
              {rows.map(({ serverId, name, mode }) => (
                <li key={serverId}>
                  <div>
                    <b>{name}</b>
                    <p>
                      {mode}, <CopyValue value={serverId} label="the server id" shown={`${serverId.slice(0, 13)}…`} />
                    </p>
                  </div>
                  <Link href={`/tail/${serverId}`} class="button">
                    Tail
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Card>
  )
}
