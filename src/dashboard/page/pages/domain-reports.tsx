/** domain-reports - what receivers report about a domain: who sends under its name, what fails and why */
import { useMemo, useState } from 'preact/hooks'
import type { Domain } from '../../../../schemas/domain.ts'
import type { ReceivedReport, ReportGroup, ReportRow, Reports, TlsReports } from '../../../../schemas/report/report.ts'
import { call, formatQuery } from '../api/call.ts'
import { useGetList } from '../api/lists.ts'
import { useLoad } from '../api/load.ts'
import { count, formatDay, formatNumber } from '../api/words.ts'
import { usePlace } from '../browser/crumbs.ts'
import type { PageProps } from '../browser/page-props.ts'
import { LinkButton, Segments } from '../parts/button.tsx'
import { Card, Empty, Head, Shown } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { ExportButton } from '../parts/export.tsx'
import { List, Rows } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

const DAY_MS = 86_400_000
const PERIODS = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
] as const
type Period = (typeof PERIODS)[number][0]

const VIEWS = [
  ['sources', 'Sources'],
  ['failures', 'Failures'],
  ['tls', 'TLS'],
  ['received', 'Received reports'],
] as const
type View = (typeof VIEWS)[number][0]

/** The page. */
export function DomainReportsPage({ id }: PageProps) {
  const [period, setPeriod] = useState<Period>('30')
  const [view, setView] = useState<View>('sources')
  const from = useMemo(() => new Date(Date.now() - Number(period) * DAY_MS).toISOString(), [period])
  const domain = useLoad<Domain>((signal) => call('GET', `/domains/${id}`, { signal }), [id])
  const name = domain.value?.domain ?? 'Domain'
  usePlace({ word: 'Domains', href: '/domains' }, { word: name, href: `/domains/${id}` }, { word: 'Reports' })
  return (
    <>
      <Head title="Reports" meta={name}>
        <Segments label="Period" options={PERIODS} value={period} onChange={setPeriod} />
        <Segments label="View" options={VIEWS} value={view} onChange={setView} />
        {view !== 'received' && (
          <ExportButton
            path={`/domains/${id}/${view === 'tls' ? 'tls-reports' : 'reports'}/export`}
            filters={filtersOf(view, from)}
          />
        )}
      </Head>
      {view === 'sources' && <Summary id={id} from={from} />}
      {view === 'failures' && <Failures id={id} from={from} />}
      {view === 'tls' && <Tls id={id} from={from} />}
      {view === 'received' && <Received id={id} />}
    </>
  )
}

/** The filters of the shown rows. */
function filtersOf(view: View, from: string): Readonly<Record<string, string>> {
  return view === 'failures' ? { from, result: 'fail' } : { from }
}

/** The effect of a policy, and the sources. */
function Summary({ id, from }: { id: string; from: string }) {
  const path = `/domains/${id}/reports${formatQuery({ from, groupBy: 'source' })}`
  const sources = useLoad<Reports>((signal) => call('GET', path, { signal }), [path])
  return (
    <Shown of={sources} lines={8}>
      {(reports) =>
        reports.totals.messages === 0 ? (
          <Card>
            <Empty icon="globe" title="No reports in this period">
              <p>Publish the recommended records of the domain. Receivers send a report each day.</p>
              <LinkButton href={`/domains/${id}`}>Show the records</LinkButton>
            </Empty>
          </Card>
        ) : (
          <>
            <Effect reports={reports} />
            <Sources groups={reports.groups} />
          </>
        )
      }
    </Shown>
  )
}

/** The effect of a policy that rejects. */
function Effect({ reports: { policy, totals } }: { reports: Reports }) {
  const { messages, passed, failed, ownFailed } = totals
  const others = failed - ownFailed
  return (
    <Card title="With p=reject" side={policy && <Chip>{`Now p=${policy.p}`}</Chip>}>
      <dl class="figures">
        <Figure word="Messages" value={messages} />
        <Figure word="Pass" value={passed} />
        <Figure word="Fail, sent by this service" value={ownFailed} />
        <Figure word="Fail, sent by others" value={others} />
      </dl>
      <p class="note">
        {ownFailed > 0
          ? `Receivers would reject ${count(ownFailed, 'message')} of this service. See below why they fail.`
          : 'Receivers would reject no message that this service sent.'}{' '}
        {others > 0 &&
          `They would also reject ${count(others, 'message')} from other addresses: forged mail, or systems of yours that do not sign.`}
      </p>
    </Card>
  )
}

function Figure({ word, value }: { word: string; value: number }) {
  return (
    <div>
      <dt>{word}</dt>
      <dd>{formatNumber(value)}</dd>
    </div>
  )
}

function Sources({ groups }: { groups: readonly ReportGroup[] }) {
  return (
    <Card title="Who sends as this domain">
      <Rows
        label="Sources"
        rows={groups}
        keyOf={({ group }) => group}
        columns={[
          { title: 'Source', kind: 'grow', cell: (one) => <Source source={one.group} own={one.own} /> },
          { title: 'Messages', kind: 'end', cell: ({ messages }) => formatNumber(messages) },
          { title: 'Pass', kind: 'end', cell: ({ passed }) => formatNumber(passed) },
          { title: 'Fail', kind: 'end', cell: ({ failed }) => formatNumber(failed) },
          { title: 'DKIM', kind: 'wide', cell: ({ dkimPassed }) => formatNumber(dkimPassed) },
          { title: 'SPF', kind: 'wide', cell: ({ spfPassed }) => formatNumber(spfPassed) },
        ]}
      />
    </Card>
  )
}

function Source({ source, own }: { source: string | null; own: boolean }) {
  return (
    <>
      <code>{source ?? 'other'}</code> {own && <Chip tone="accepted">This service</Chip>}
    </>
  )
}

/** Messages that fail, with the result of each check. */
function Failures({ id, from }: { id: string; from: string }) {
  const filters = useMemo(() => ({ from, result: 'fail' }), [from])
  const list = useGetList<ReportRow>(`/domains/${id}/reports`, 'reports', filters)
  return (
    <List
      label="Failures"
      list={list}
      keyOf={(row) => JSON.stringify(row)}
      columns={[
        { title: 'Source', kind: 'grow', cell: (row) => <Source source={row.source} own={row.own} /> },
        { title: 'Messages', kind: 'end', cell: ({ messages }) => formatNumber(messages) },
        { title: 'DKIM', kind: 'titled', cell: dkimOf },
        { title: 'SPF', kind: 'titled', cell: spfOf },
        { title: 'Done', kind: 'wide', cell: ({ disposition, override }) => override ?? disposition },
        { title: 'Day', kind: 'end', cell: ({ day }) => formatDay(day) },
      ]}
      empty={
        <Empty icon="check" title="Nothing fails">
          <p>All reported messages pass DMARC.</p>
        </Empty>
      }
    />
  )
}

function dkimOf({ dkimResult, dkimDomain, headerFrom }: ReportRow): string {
  if (dkimResult === null) return 'no signature'
  return dkimResult === 'pass' ? `signed by ${dkimDomain}, not by ${headerFrom}` : `${dkimResult} for ${dkimDomain}`
}

function spfOf({ spfResult, spfDomain, headerFrom }: ReportRow): string {
  if (spfResult === null) return 'not checked'
  return spfResult === 'pass' ? `passed for ${spfDomain}, not for ${headerFrom}` : `${spfResult} for ${spfDomain}`
}

/** Sessions to the domain's own mail servers. */
function Tls({ id, from }: { id: string; from: string }) {
  const path = `/domains/${id}/tls-reports`
  const loaded = useLoad<TlsReports>((signal) => call('GET', path + formatQuery({ from }), { signal }), [path, from])
  return (
    <Shown of={loaded} lines={2}>
      {({ totals, reports }) =>
        totals.sessions === 0 ? (
          <Card>
            <Empty icon="safe" title="No TLS reports in this period">
              <p>They are about connections of other servers to your own mail servers.</p>
            </Empty>
          </Card>
        ) : (
          <Card title="TLS to your mail servers">
            <p class="note">
              {formatNumber(totals.succeeded)} sessions succeeded, {formatNumber(totals.failed)} failed.
            </p>
            <Rows
              label="Failed sessions"
              rows={reports.filter(({ result }) => result !== null)}
              keyOf={(row) => JSON.stringify(row)}
              columns={[
                { title: 'Result', kind: 'grow', cell: ({ result }) => result },
                { title: 'Server', cell: ({ receivingMx }) => receivingMx && <code>{receivingMx}</code> },
                { title: 'Reporter', kind: 'wide', cell: ({ reporter }) => reporter ?? 'other' },
                { title: 'Sessions', kind: 'end', cell: ({ sessions }) => formatNumber(sessions) },
              ]}
            />
          </Card>
        )
      }
    </Shown>
  )
}

/** The reports that came. */
function Received({ id }: { id: string }) {
  const list = useGetList<ReceivedReport>(`/domains/${id}/received-reports`, 'reports')
  return (
    <List
      label="Received reports"
      list={list}
      keyOf={({ reportId, receivedAt }) => `${reportId} ${receivedAt}`}
      columns={[
        { title: 'Reporter', kind: 'grow', cell: ({ reporter }) => reporter || 'unknown' },
        { title: 'Kind', cell: ({ kind }) => (kind === 'dmarc' ? 'DMARC' : 'TLS') },
        {
          title: 'State',
          cell: ({ authenticated }) =>
            authenticated ? 'Counted' : <Chip tone="bounced">Unauthenticated, not counted</Chip>,
        },
        { title: 'Messages', kind: 'end', cell: ({ messages }) => formatNumber(messages) },
        { title: 'Received', kind: 'end', cell: ({ receivedAt }) => <Time at={receivedAt} /> },
      ]}
      empty={
        <Empty icon="inbox" title="No report yet">
          <p>Reports are listed for two months.</p>
        </Empty>
      }
    />
  )
}
