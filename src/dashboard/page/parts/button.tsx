/** button - buttons, and links that look like them */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { ApiError } from '../api/call.ts'
import { Icon, type IconName } from './icon.tsx'
import { sayFault } from './toast.tsx'

interface ButtonProps {
  readonly children: ComponentChildren
  readonly icon?: IconName
  readonly kind?: 'plain' | 'main' | 'bare' | 'danger'
  readonly type?: 'button' | 'submit'
  readonly disabled?: boolean
  /** Its action; while a promise is pending it cannot be pressed again, and an error is shown. */
  readonly onPress?: () => unknown
  readonly pressed?: boolean
  readonly title?: string
}

/** A button. */
export function Button({
  children,
  icon,
  kind = 'plain',
  type = 'button',
  disabled,
  onPress,
  pressed,
  title,
}: ButtonProps) {
  const [isBusy, setBusy] = useState(false)
  const press = async () => {
    if (onPress === undefined || isBusy) return
    const result = onPress()
    if (!(result instanceof Promise)) return
    setBusy(true)
    try {
      await result
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      sayFault(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button
      type={type}
      class={`button ${kind}`}
      disabled={disabled || isBusy}
      aria-busy={isBusy || undefined}
      aria-pressed={pressed}
      title={title}
      onClick={onPress === undefined ? undefined : () => void press()}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

/** A button that is a picture alone. */
export function IconButton({ icon, label, onPress }: { icon: IconName; label: string; onPress: () => unknown }) {
  return (
    <button type="button" class="button bare icon" aria-label={label} title={label} onClick={() => void onPress()}>
      <Icon name={icon} />
    </button>
  )
}

interface LinkButtonProps {
  readonly href: string
  readonly children: ComponentChildren
  readonly icon?: IconName
  readonly kind?: 'plain' | 'main'
  /** Filters of the list that it leads to. */
  readonly filters?: Readonly<Record<string, string>> | undefined
}

/** A link that looks like a button. */
export function LinkButton({ href, children, icon, kind = 'plain', filters }: LinkButtonProps) {
  return (
    <Link href={href} class={`button ${kind}`} {...(filters && { state: { filters } })}>
      {icon && <Icon name={icon} />}
      {children}
    </Link>
  )
}

interface SegmentsProps<Value extends string> {
  readonly label: string
  readonly options: readonly (readonly [value: Value, word: string])[]
  readonly value: Value
  readonly onChange: (value: Value) => void
}

/** A few alternatives, one selected. */
export function Segments<Value extends string>({ label, options, value, onChange }: SegmentsProps<Value>) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a row everywhere.
    <div class="seg" role="group" aria-label={label}>
      {options.map(([one, word]) => (
        <button type="button" class="button" key={one} aria-pressed={one === value} onClick={() => onChange(one)}>
          {word}
        </button>
      ))}
    </div>
  )
}
