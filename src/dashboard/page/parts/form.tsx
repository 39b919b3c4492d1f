/** form - fields with their labels and errors; a form keeps its text after every answer */

import { TriangleAlert } from 'lucide-preact'
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useId, useState } from 'preact/hooks'
import { ApiError } from '../api/call.ts'

const Issues = createContext<Readonly<Record<string, string>>>({})

interface FormProps {
  /** Sends it. Errors are shown in the form, at their field if they name one. */
  readonly onSend: () => Promise<unknown>
  readonly act: string
  readonly children: ComponentChildren
  /** Beside the button. */
  readonly side?: ComponentChildren
  readonly isDanger?: boolean
  /** Whether it is secondary to another form of its page. */
  readonly isSecond?: boolean
  readonly label?: string
  /** Whether there is nothing to send yet. */
  readonly disabled?: boolean
}

/** A form with one button that sends it. */
export function Form(props: FormProps) {
  const { onSend, act, children, side, isDanger = false, isSecond = false, label, disabled = false } = props
  const kind = isDanger ? 'danger' : isSecond ? 'plain' : 'main'
  const [error, setError] = useState<ApiError | null>(null)
  const [isBusy, setBusy] = useState(false)
  const send = async (event: Event) => {
    event.preventDefault()
    if (isBusy) return
    setBusy(true)
    setError(null)
    try {
      await onSend()
    } catch (fault) {
      if (!(fault instanceof ApiError)) throw fault
      setError(fault)
    } finally {
      setBusy(false)
    }
  }
  const issues = Object.fromEntries((error?.issues ?? []).map(({ path, message }) => [path.split('.')[0], message]))
  return (
    <form class="form" noValidate aria-label={label} onSubmit={(event) => void send(event)}>
      <Issues.Provider value={issues}>{children}</Issues.Provider>
      {error !== null && <Refused error={error} />}
      <footer>
        {side}
        <button type="submit" class={`button ${kind}`} disabled={disabled || isBusy} aria-busy={isBusy}>
          {act}
        </button>
      </footer>
    </form>
  )
}

function Refused({ error }: { error: ApiError }) {
  return (
    <div class="refused" role="alert">
      <TriangleAlert size={16} aria-hidden="true" />
      <div>
        <p>{error.message}</p>
        {error.requestId !== null && error.status >= 500 && <p class="hint">Request {error.requestId}</p>}
      </div>
    </div>
  )
}

interface FieldProps {
  /** Name of the property in the body. Issues refer to it. */
  readonly name: string
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly type?: 'text' | 'email' | 'password' | 'number' | 'url' | 'search'
  readonly hint?: ComponentChildren
  readonly lines?: number
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly required?: boolean
  readonly autofocus?: boolean
  readonly inputMode?: 'numeric' | 'text' | 'email'
  readonly mono?: boolean
}

/** A text field; with `lines`, a text area of that height. */
export function Field(props: FieldProps) {
  const { name, label, value, onChange, hint, lines, type = 'text', autofocus, mono, ...rest } = props
  const id = useId()
  const issue = useContext(Issues)[name]
  const about = `${id}-about`
  const common = {
    id,
    name,
    value,
    class: mono ? 'mono' : '',
    'aria-invalid': issue !== undefined,
    'aria-describedby': hint !== undefined || issue !== undefined ? about : undefined,
    onInput: (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value),
    ...rest,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {lines === undefined ? (
        // biome-ignore lint/a11y/noAutofocus: only on pages with a single field.
        <input type={type} autoFocus={autofocus} {...common} />
      ) : (
        <textarea rows={lines} {...common} />
      )}
      {(issue !== undefined || hint !== undefined) && (
        <p id={about} class={issue === undefined ? 'hint' : 'issue'}>
          {issue ?? hint}
        </p>
      )}
    </div>
  )
}

interface SelectProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, word: string])[]
  readonly onChange: (value: string) => void
  readonly hint?: ComponentChildren
}

/** A choice of one among several. */
export function Select({ label, value, options, onChange, hint }: SelectProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([one, word]) => (
          <option key={one} value={one} selected={one === value}>
            {word}
          </option>
        ))}
      </select>
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  )
}

interface TickProps {
  readonly label: string
  readonly checked: boolean
  readonly onChange: (checked: boolean) => void
  readonly hint?: string
  readonly disabled?: boolean
}

/** Yes or no. */
export function Tick({ label, checked, onChange, hint, disabled }: TickProps) {
  const id = useId()
  return (
    <div class="tick">
      <input
        type="checkbox"
        id={id}
        checked={checked}
        disabled={disabled}
        aria-describedby={hint === undefined ? undefined : `${id}-about`}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p id={`${id}-about`} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}
