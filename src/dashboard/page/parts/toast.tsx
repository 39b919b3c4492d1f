/** toast - short notifications of success or failure at the edge of the page */
import { signal } from '@preact/signals'
import type { ApiError } from '../api/call.ts'
import { Icon } from './icon.tsx'

interface Toast {
  readonly id: number
  readonly text: string
  readonly isFault: boolean
}

const SHOWN_MS = 6000
const SHOWN_MAX = 4
const shown = signal<readonly Toast[]>([])
let last = 0

function add(text: string, isFault: boolean): void {
  last += 1
  const id = last
  shown.value = [...shown.value, { id, text, isFault }].slice(-SHOWN_MAX)
  setTimeout(() => drop(id), SHOWN_MS)
}

function drop(id: number): void {
  shown.value = shown.value.filter((one) => one.id !== id)
}

/** Shows the result of an action. */
export function say(text: string): void {
  add(text, false)
}

/** Shows a refusal with its Request-Id. */
export function sayFault({ message, requestId, issues }: ApiError): void {
  const why = issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ')
  add([message, why, requestId === null ? '' : `Request ${requestId}`].filter((one) => one !== '').join('. '), true)
}

/** The container of toasts, once per page. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map(({ id, text, isFault }) => (
        <div key={id} class={`toast ${isFault ? 'bounced' : 'delivered'}`}>
          <Icon name={isFault ? 'alert' : 'check'} />
          <p>{text}</p>
          <button type="button" class="button bare icon" aria-label="Close" onClick={() => drop(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}
