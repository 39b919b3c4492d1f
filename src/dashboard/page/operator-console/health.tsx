/** health - the requirements of the installation, and the fix of each problem */
import type { Health } from '../../../../schemas/operator/health.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { Button } from '../parts/button.tsx'
import { Card, Head, Shown } from '../parts/card.tsx'
import { lookOf, StatusChip } from '../parts/chip.tsx'
import { Code } from '../parts/copy.tsx'
import { Icon } from '../parts/icon.tsx'

const RANKS = ['failed', 'warning', 'ok']

/** The page. */
export function HealthPage() {
  const health = useLoad<Health>((signal) => call('GET', '/health', { signal }), [])
  return (
    <>
      <Head
        title="Health"
        meta={health.value === null ? 'Looking …' : <StatusChip status={health.value.ok ? 'ok' : 'failed'} />}
      >
        <Button icon="refresh" onPress={health.reload}>
          Re-run checks
        </Button>
      </Head>
      <Card title="Findings">
        <Shown of={health} lines={8}>
          {({ findings }) => (
            <ul class="needs">
              {[...findings]
                .sort((one, other) => RANKS.indexOf(one.status) - RANKS.indexOf(other.status))
                .map(({ name, status, message, fix }) => (
                  <li key={name}>
                    <span class={`node ${lookOf(status).tone}`}>
                      <Icon name={lookOf(status).icon} size={14} />
                    </span>
                    <div>
                      <b>{name}</b>
                      <p>{message}</p>
                      {fix !== null && <Code text={fix} label="the fix" />}
                    </div>
                  </li>
                ))}
            </ul>
          )}
        </Shown>
      </Card>
    </>
  )
}
