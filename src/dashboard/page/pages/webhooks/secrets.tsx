/** secrets - a webhook's signing secrets: two at most, so that one can be exchanged for another without a gap */
import { useState } from 'preact/hooks'
import type { Webhook } from '../../../../../schemas/webhook.ts'
import { call } from '../../api/call.ts'
import { may } from '../../api/session.ts'
import { Button } from '../../parts/button.tsx'
import { Card } from '../../parts/card.tsx'
import { Code } from '../../parts/copy.tsx'
import { ask, Dialog } from '../../parts/dialog.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'

const SECRETS_MAX = 2

interface SecretsProps {
  readonly webhook: Webhook
  readonly path: string
  readonly onChange: () => void
}

/** The card. */
export function Secrets({ webhook: { secrets }, path, onChange }: SecretsProps) {
  const [made, setMade] = useState<string | null>(null)
  const add = async () => {
    setMade((await call<{ secret: string }>('POST', `${path}/secrets`)).secret)
    onChange()
  }
  const remove = async (secretId: string) => {
    const text = 'Posts are no longer signed with it. First make your application use the other secret.'
    if (!(await ask({ title: 'Remove this secret?', text, act: 'Remove', isDanger: true }))) return
    await call('DELETE', `${path}/secrets/${secretId}`)
    say('The secret is removed')
    onChange()
  }
  return (
    <Card title="Signing secrets" side={`${secrets.length} of ${SECRETS_MAX}`}>
      <ul class="needs">
        {secrets.map(({ secretId, createdAt }) => (
          <li key={secretId}>
            <div>
              <b>
                Created <Time at={createdAt} />
              </b>
              <p>
                <code>{secretId.slice(0, 8)}…</code>
              </p>
            </div>
            {may('write') && secrets.length > 1 && <Button onPress={() => remove(secretId)}>Remove</Button>}
          </li>
        ))}
      </ul>
      {may('write') && secrets.length < SECRETS_MAX && (
        <footer class="more">
          <Button icon="plus" onPress={add}>
            New secret
          </Button>
        </footer>
      )}
      {made !== null && (
        <Dialog title="The new secret" onClose={() => setMade(null)}>
          <p class="dialog-text">
            Copy it now. It is shown only once. Posts carry both signatures until you remove the old secret.
          </p>
          <Code text={made} label="the secret" />
        </Dialog>
      )}
    </Card>
  )
}
