/** note - asks for a reason for every write of an operator, for the audit log */
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { Dialog } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/form.tsx'

interface Noted {
  readonly title: string
  readonly text?: string
  readonly act: string
  readonly isDanger?: boolean
  /** Fields beside the note, by their names in the body: label and initial value. */
  readonly fields?: Readonly<Record<string, readonly [label: string, value: string]>>
  /** Gives the order. In: its body. */
  readonly send: (body: Record<string, unknown>) => Promise<unknown>
}

const asked = signal<Noted | null>(null)

/** Asks for the note and gives the order. */
export function order(noted: Noted): void {
  asked.value = noted
}

/** Where it is asked; once on a page. */
export function NoteDialog() {
  const noted = asked.value
  return noted === null ? null : <NoteAsked noted={noted} key={noted.title} />
}

function NoteAsked({ noted }: { noted: Noted }) {
  const { title, text, act, isDanger = false, fields = {}, send } = noted
  const [note, setNote] = useState('')
  const [values, setValues] = useState(() =>
    Object.fromEntries(Object.entries(fields).map(([name, [, value]]) => [name, value])),
  )
  const close = () => {
    asked.value = null
  }
  const sendIt = async () => {
    const numbers = Object.entries(values).flatMap(([name, value]) => (value === '' ? [] : [[name, Number(value)]]))
    await send({ ...Object.fromEntries(numbers), ...(note !== '' && { note }) })
    close()
  }
  return (
    <Dialog title={title} onClose={close}>
      {text !== undefined && <p class="dialog-text">{text}</p>}
      <Form act={act} onSend={sendIt} isDanger={isDanger}>
        {Object.entries(fields).map(([name, [label]]) => (
          <Field
            key={name}
            name={name}
            label={label}
            type="number"
            value={values[name] ?? ''}
            onChange={(value) => setValues({ ...values, [name]: value })}
          />
        ))}
        <Field name="note" label="Note" value={note} onChange={setNote} hint="The reason, for the audit log." />
      </Form>
    </Dialog>
  )
}
