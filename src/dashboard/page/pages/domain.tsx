/**
 * domain - one domain: its state in a sentence, each record with the value found instead, and a new check
 *
 * While an unverified domain is shown it is checked by itself, every 10 s, after 5 minutes each minute.
 */
import { useEffect } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import type { Domain, DomainChecked } from '../../../../schemas/domain.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { may } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import type { PageProps } from '../browser/page-props.ts'
import { Button, LinkButton } from '../parts/button.tsx'
import { Card, Head, Shown } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { Code, CopyValue } from '../parts/copy.tsx'
import { DefinitionList } from '../parts/definition-list.tsx'
import { ask } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'
import { formatZone, listRecords, type RecordShown, sentenceOf, undecidedOf, unreachableOf } from './domain-words.ts'
import { DomainChip } from './domains.tsx'

const OFTEN_MS = 10_000
const SELDOM_MS = 60_000
const OFTEN_FOR_MS = 5 * 60_000

/** The page. */
export function DomainPage({ id }: PageProps) {
  const loaded = useLoad<Domain | DomainChecked>((signal) => call('GET', `/domains/${id}`, { signal }), [id])
  const { value, set } = loaded
  usePlace({ word: 'Domains', href: '/domains' }, { word: value?.domain ?? 'Domain' })
  const mayCheck = may('write')
  const isWaiting = value !== null && !value.testOnly && (!value.verified || value.failingSince !== null)
  useEffect(() => {
    if (!isWaiting || !mayCheck) return
    const startMs = Date.now()
    let timer = 0
    const look = async () => {
      if (!document.hidden) {
        const checked = await call<DomainChecked>('POST', `/domains/${id}/look`).catch(() => null)
        if (checked !== null) set(checked)
      }
      timer = window.setTimeout(look, Date.now() - startMs < OFTEN_FOR_MS ? OFTEN_MS : SELDOM_MS)
    }
    void look()
    return () => clearTimeout(timer)
  }, [id, isWaiting, mayCheck, set])
  const useInTests = async () => set(await call<Domain>('POST', `/domains/${id}/test-use`))
  const check = async () => set(await call<DomainChecked>('POST', `/domains/${id}/verify`))
  return (
    <Shown of={loaded} lines={8} subject={{ word: 'Domain', back: { word: 'See domains', href: '/domains' } }}>
      {(domain) => (
        <>
          <Head title={domain.domain} meta={<DomainChip domain={domain} />}>
            <LinkButton href={`/domains/${id}/reports`}>Reports</LinkButton>
            {may('administer') && !domain.verified && !domain.testOnly && (
              <Button onPress={useInTests}>Use on test servers</Button>
            )}
            {mayCheck && (
              <Button icon="refresh" onPress={check}>
                Check now
              </Button>
            )}
          </Head>
          <p class="sentence" role="status">
            {sentenceOf(domain)}
          </p>
          {[unreachableOf(domain), undecidedOf(domain)].map(
            (warning) =>
              warning !== null && (
                <div class="warned" role="note" key={warning}>
                  <Icon name="alert" />
                  <p>{warning}</p>
                </div>
              ),
          )}
          {listRecords(domain).map((record) => (
            <RecordCard key={record.title} record={record} domain={domain.domain} />
          ))}
          <Recommended domain={domain} />
          <Zone domain={domain} />
          {may('administer') && <Danger domain={domain} onChange={set} />}
        </>
      )}
    </Shown>
  )
}

function RecordCard({ record, domain }: { record: RecordShown; domain: string }) {
  const { title, type, host, value, result, found, verifiedAt } = record
  const relative = host.endsWith(`.${domain}`) ? host.slice(0, -domain.length - 1) : host
  const isWrong = result !== null && result !== 'ok'
  return (
    <Card
      title={title}
      side={<StatusChip status={result ?? (record.verified ? 'ok' : 'pending')}>{wordOfResult(record)}</StatusChip>}
    >
      <DefinitionList
        of={[
          ['Type', type],
          ['Host', <CopyValue value={host} label="the host" key="host" />],
          [
            'Name (relative)',
            relative === host ? null : <CopyValue value={relative} label="the host in the zone" key="zone" />,
          ],
          ['Value', <CopyValue value={value} label="the value" key="value" />],
          ['Found', isWrong ? <Found found={found} key="found" /> : null],
          ['Since', verifiedAt === null ? null : <Time at={verifiedAt} as="long" key="since" />],
        ]}
      />
    </Card>
  )
}

function Found({ found }: { found: readonly string[] }) {
  if (found.length === 0) return <span class="dim">nothing under this name</span>
  return (
    <ul class="found">
      {found.map((one) => (
        <li key={one}>
          <code>{one}</code>
        </li>
      ))}
    </ul>
  )
}

function wordOfResult({ result, verified }: RecordShown): string {
  if (result === null) return verified ? 'Found' : 'Not checked yet'
  return {
    ok: 'Found',
    missing: 'Missing',
    mismatch: 'Has a different value',
    dns_error: 'Name servers did not answer',
  }[result]
}

/** The records that lead reports here. */
function Recommended({ domain: { domain, recommended } }: { domain: Domain }) {
  if (recommended.length === 0) return null
  return (
    <Card title="Recommended: reports of receivers">
      <p class="note">
        With these records receivers report here who sends as {domain}. If you have a DMARC record, add its address to
        your <code>rua</code>.
      </p>
      {recommended.map(({ type, host, value }) => (
        <DefinitionList
          key={host}
          of={[
            ['Type', type],
            ['Host', <CopyValue value={host} label="the host of the record" key="host" />],
            ['Value', <CopyValue value={value} label="the value of the record" key="value" />],
          ]}
        />
      ))}
    </Card>
  )
}

function Zone({ domain }: { domain: Domain }) {
  const zone = formatZone(domain)
  return (
    <Card title="For your zone file">
      <Code text={zone} label="the zone" />
      <p class="note">
        The last lines are advice: DMARC tells receivers what to do with mail that is not yours. Begin with{' '}
        <code>p=none</code>, read its reports, then move to <code>quarantine</code> and <code>reject</code>.
      </p>
    </Card>
  )
}

function Danger({ domain, onChange }: { domain: Domain; onChange: (domain: Domain) => void }) {
  const [, go] = useLocation()
  const rotate = async () => {
    onChange(await call<Domain>('POST', `/domains/${domain.domainId}/rotate-dkim`))
    say('A second key is waiting for its record')
  }
  const remove = async () => {
    const text = 'New messages from this domain are refused. Accepted mail is still delivered.'
    if (!(await ask({ title: `Remove ${domain.domain}?`, text, act: 'Remove', isDanger: true }))) return
    await call('DELETE', `/domains/${domain.domainId}`)
    say(`${domain.domain} is removed`)
    go('/domains')
  }
  return (
    <Card title="Changes">
      <ul class="needs">
        <li>
          <div>
            <b>Another DKIM key</b>
            <p>The new key signs once its record is found; the old record has to stay for 7 days more.</p>
          </div>
          <Button onPress={rotate} disabled={domain.pendingDkim !== undefined}>
            Rotate
          </Button>
        </li>
        <li>
          <div>
            <b>Remove the domain</b>
            <p>New messages from it are refused at once.</p>
          </div>
          <Button kind="danger" onPress={remove}>
            Remove
          </Button>
        </li>
      </ul>
    </Card>
  )
}
