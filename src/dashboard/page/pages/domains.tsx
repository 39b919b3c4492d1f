/** domains - the account's sending domains, each with its state in a sentence */
import { useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import type { Domain } from '../../../../schemas/domain.ts'
import { call } from '../api/call.ts'
import { useGetList } from '../api/lists.ts'
import { may } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useOpening } from '../browser/opening.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Head } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field, Form, Tick } from '../parts/form.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

/** The page. */
export function DomainsPage() {
  usePlace({ word: 'Domains' })
  const [isAdding, setAdding] = useState(false)
  useOpening(() => setAdding(true))
  const list = useGetList<Domain>('/domains', 'domains')
  const add = may('administer') && (
    <Button kind="main" icon="plus" onPress={() => setAdding(true)}>
      Add a domain
    </Button>
  )
  return (
    <>
      <Head title="Domains" meta="A From address must use a verified domain.">
        {add}
      </Head>
      <List
        label="Domains"
        list={list}
        keyOf={({ domainId }) => domainId}
        columns={[
          {
            title: 'Domain',
            kind: 'grow',
            cell: ({ domain, domainId }) => (
              <Link href={`/domains/${domainId}`} class="row-link">
                {domain}
              </Link>
            ),
          },
          { title: 'State', cell: (domain) => <DomainChip domain={domain} /> },
          {
            title: 'Last checked',
            kind: 'end',
            cell: ({ lastCheckedAt }) => (lastCheckedAt === null ? 'not yet' : <Time at={lastCheckedAt} as="ago" />),
          },
        ]}
        empty={
          <Empty icon="globe" title="No domain yet">
            <p>
              Test servers send from simulator.test. Add the domain of your From addresses for them and for live mail.
            </p>
            {add}
          </Empty>
        }
      />
      {isAdding && <AddDomain onClose={() => setAdding(false)} />}
    </>
  )
}

/** A domain's state. */
export function DomainChip({ domain: { verified, testOnly, failingSince, unverifiedSince } }: { domain: Domain }) {
  if (testOnly)
    return (
      <Chip tone="test" icon="info">
        Test servers only
      </Chip>
    )
  if (unverifiedSince !== undefined)
    return (
      <Chip tone="bounced" icon="bounced">
        Stopped sending
      </Chip>
    )
  if (!verified)
    return (
      <Chip tone="deferred" icon="clock">
        Pending DNS
      </Chip>
    )
  if (failingSince !== null)
    return (
      <Chip tone="bounced" icon="alert">
        A record is missing
      </Chip>
    )
  return (
    <Chip tone="delivered" icon="check">
      Verified
    </Chip>
  )
}

/** Names without public DNS (RFC 2606, 6761, 6762). */
const NO_PUBLIC_DNS = /\.(?:localhost|local|test|example|invalid)\.?$/i
const UNVERIFIABLE = 'This name has no public DNS records, so it cannot be verified. Test servers can use it.'

function AddDomain({ onClose }: { onClose: () => void }) {
  const [domain, setDomain] = useState('')
  const [testOnly, setTestOnly] = useState(false)
  const [, go] = useLocation()
  const send = async () => {
    const { domainId } = await call<Domain>('POST', '/domains', { body: { domain, testOnly } })
    onClose()
    go(`/domains/${domainId}`)
  }
  return (
    <Dialog title="Add a domain" onClose={onClose}>
      <Form act="Add domain" onSend={send}>
        <Field
          name="domain"
          label="Domain"
          placeholder="mail.example.com"
          value={domain}
          onChange={setDomain}
          hint={NO_PUBLIC_DNS.test(domain) ? UNVERIFIABLE : 'The part after the @ of your From addresses.'}
          autofocus
        />
        <Tick
          label="Use on test servers at once"
          checked={testOnly}
          onChange={setTestOnly}
          hint="Test servers can send from it before its DNS records are found. Live servers cannot."
        />
      </Form>
    </Dialog>
  )
}
