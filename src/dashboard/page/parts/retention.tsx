/** retention - a form for how long mail is kept: of an account, a server, a stream or the installation */
import { useState } from 'preact/hooks'
import type {
  AccountRetention,
  ContentRetention,
  InstallationRetention,
} from '../../../../schemas/retention/retention.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { Shown } from './card.tsx'
import { Dialog } from './dialog.tsx'
import { Field, Form } from './form.tsx'
import { say } from './toast.tsx'

type Retention = ContentRetention | AccountRetention | InstallationRetention

interface RetentionProps {
  /** Of the interface, without `/retention`. */
  readonly path: string
  readonly onDone?: (() => void) | undefined
}

/** The form in a dialog. */
export function RetentionDialog({ title, path, onClose }: { title: string; path: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <RetentionForm path={path} onDone={onClose} />
    </Dialog>
  )
}

/** The form. */
export function RetentionForm({ path, onDone }: RetentionProps) {
  const retention = useLoad<Retention>((signal) => call('GET', `${path}/retention`, { signal }), [path])
  return (
    <Shown of={retention} lines={3}>
      {(shown) => <Fields key={JSON.stringify(shown)} {...{ path, shown, onDone, onChange: retention.set }} />}
    </Shown>
  )
}

interface FieldsProps extends RetentionProps {
  readonly shown: Retention
  readonly onChange: (retention: Retention) => void
}

function Fields({ path, shown, onChange, onDone }: FieldsProps) {
  const ofContent = 'sentContentDays' in shown ? shown : null
  const ofLog = 'logRetentionMonths' in shown ? shown : null
  const [days, setDays] = useState(formatDays(ofContent?.sentContentDays ?? null))
  const [months, setMonths] = useState(formatDays(ofLog?.logRetentionMonths ?? null))
  const send = async () => {
    const body = {
      ...(ofContent !== null && { sentContentDays: parseDays(days) }),
      ...(ofLog !== null && { logRetentionMonths: parseDays(months) }),
    }
    onChange(await call<Retention>('PATCH', `${path}/retention`, { body }))
    say('Saved. It applies within a day to stored mail.')
    onDone?.()
  }
  return (
    <Form act="Save retention" onSend={send}>
      {ofContent !== null && (
        <Field
          name="sentContentDays"
          label="Days for text and HTML of sent mail"
          type="number"
          inputMode="numeric"
          value={days}
          onChange={setDays}
          hint={`0 to 30; 0 deletes them once delivery has ended. Empty inherits. Now: ${ofContent.effective.sentContentDays}.`}
        />
      )}
      {ofLog !== null && (
        <Field
          name="logRetentionMonths"
          label="Months for messages and events"
          type="number"
          inputMode="numeric"
          value={months}
          onChange={setMonths}
          hint={`1 to 13. Empty inherits. Now: ${ofLog.effective.logRetentionMonths}.`}
        />
      )}
    </Form>
  )
}

function formatDays(value: number | null): string {
  return value === null ? '' : String(value)
}

function parseDays(text: string): number | null {
  return text === '' ? null : Number(text)
}
