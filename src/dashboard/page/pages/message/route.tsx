/** route - the route of one delivery attempt: its server and time in a line, all else when it is opened */
import type { MessageEvent } from '../../../../../schemas/message.ts'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Icon } from '../../parts/icon.tsx'

interface RouteProps {
  readonly route: NonNullable<MessageEvent['route']>
}

const DANE = { verified: 'Verified', encrypted: 'Encrypted only', failed: 'Failed' } as const
const STS = { enforce: 'Enforced', testing: 'Testing' } as const

/** The route. */
export function Route({ route }: RouteProps) {
  const { host, address, sourceAddress, certificateVerified, mtaSts, dane, connectionReused } = route
  const { tlsVersion, cipher, dnsMs, connectMs, tlsMs, transactionMs } = route
  const isOpen = transactionMs !== null
  const tls = tlsVersion === null ? 'Plaintext' : `${tlsVersion}, ${cipher ?? 'unknown cipher'}`
  const steps = [
    ['DNS', dnsMs],
    ['connection', connectMs],
    ['TLS', tlsMs],
    ['SMTP', transactionMs],
  ] as const
  const times = steps.flatMap(([name, ms]) => (ms === null ? [] : `${name} ${ms} ms`))
  return (
    <details class="hook">
      <summary>
        <Icon name="globe" size={14} />
        <span>
          {host}
          {isOpen && `, ${tlsVersion ?? 'plaintext'}`}
        </span>
        <Icon name="down" size={14} />
      </summary>
      <DefinitionList
        of={[
          ['Server', address === null ? host : `${host} [${address}]`],
          ['From address', sourceAddress],
          ['Encryption', isOpen ? tls : null],
          ['Certificate', tlsVersion === null ? null : certificateVerified ? 'Verified' : 'Not verified'],
          ['MTA-STS', mtaSts === null ? null : STS[mtaSts]],
          ['DANE', dane === null ? null : DANE[dane]],
          ['Connection', isOpen ? (connectionReused ? 'Reused' : 'New') : 'Not opened'],
          ['Time', times.length === 0 ? null : times.join(', ')],
        ]}
      />
    </details>
  )
}
