/** filters - the filters of a list: each a chip, with a field that opens under it */
import { useId, useRef, useState } from 'preact/hooks'
import { formatInstantShort, formatStatus } from '../api/words.ts'
import { Icon } from './icon.tsx'

export interface FilterField {
  readonly name: string
  readonly label: string
  /** Allowed values; if absent, any text. */
  readonly options?: readonly (readonly [value: string, word: string])[]
  /** An example of a text. */
  readonly hint?: string
  /** A complete address, or an instant; absent: any text. */
  readonly kind?: 'address' | 'time'
  /** Shown only with a value, or on request. */
  readonly isRare?: boolean
}

/** Something on both sides of one @. */
export const ADDRESS = /^[^\s@]+@[^\s@]+$/

interface FiltersProps {
  readonly fields: readonly FilterField[]
  readonly values: Readonly<Record<string, string>>
  readonly onChange: (values: Record<string, string>) => void
}

/** A row of filters. */
export function Filters({ fields, values, onChange }: FiltersProps) {
  const change = (name: string, value: string) => {
    const { [name]: _, ...others } = values
    onChange(value === '' ? others : { ...others, [name]: value })
  }
  const [isWhole, setWhole] = useState(false)
  const shown = fields.filter(({ name, isRare }) => isWhole || isRare !== true || values[name] !== undefined)
  return (
    // biome-ignore lint/a11y/useSemanticElements: it is a row of buttons.
    <div class="filters" role="group" aria-label="Filters">
      {shown.map((field) => (
        <Filter
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          onChange={(value) => change(field.name, value)}
        />
      ))}
      {shown.length < fields.length && (
        <button type="button" class="button bare" onClick={() => setWhole(true)}>
          More filters
        </button>
      )}
      {Object.keys(values).length > 1 && (
        <button type="button" class="button bare" onClick={() => onChange({})}>
          Clear all
        </button>
      )}
    </div>
  )
}

function Filter({ field, value, onChange }: { field: FilterField; value: string; onChange: (value: string) => void }) {
  const { label, options, kind } = field
  const menu = useRef<HTMLDivElement>(null)
  const id = useId()
  const word = options?.find(([one]) => one === value)?.[1] ?? (kind === 'time' ? timeOf(value) : value)
  const choose = (next: string) => {
    menu.current?.hidePopover()
    onChange(next)
  }
  return (
    <div class="filter">
      <button
        type="button"
        class={`pick ${value === '' ? '' : 'on'}`}
        popoverTarget={id}
        style={{ anchorName: `--${id}` }}
      >
        <Icon name={value === '' ? 'plus' : 'streams'} size={13} />
        {label}
        {value !== '' && <b>{options === undefined ? word : formatStatus(word)}</b>}
      </button>
      {value !== '' && (
        <button type="button" class="pick-off" aria-label={`Remove the filter ${label}`} onClick={() => onChange('')}>
          <Icon name="close" size={13} />
        </button>
      )}
      <div popover="auto" id={id} class="menu-list" ref={menu} style={{ positionAnchor: `--${id}` }}>
        {kind === 'time' ? (
          <TimeFilter field={field} value={value} onChoose={choose} />
        ) : options === undefined ? (
          <TextFilter field={field} value={value} onChoose={choose} />
        ) : (
          options.map(([one, name]) => (
            <button type="button" key={one} aria-pressed={one === value} onClick={() => choose(one)}>
              {formatStatus(name)}
            </button>
          ))
        )}
      </div>
    </div>
  )
}

interface FieldProps {
  readonly field: FilterField
  readonly value: string
  readonly onChoose: (value: string) => void
}

const PRESETS = [
  ['1 hour ago', 3_600_000],
  ['24 hours ago', 86_400_000],
  ['7 days ago', 604_800_000],
  ['30 days ago', 2_592_000_000],
] as const

/** An instant of the reader's zone; the value is in UTC. */
function TimeFilter({ field: { label }, value, onChoose }: FieldProps) {
  const [text, setText] = useState(value === '' ? '' : localOf(value))
  return (
    <form
      class="filter-form"
      onSubmit={(event) => {
        event.preventDefault()
        onChoose(text === '' ? '' : new Date(text).toISOString())
      }}
    >
      <input
        type="datetime-local"
        aria-label={label}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" class="button main">
        Apply
      </button>
      <p class="presets">
        {PRESETS.map(([word, ms]) => (
          <button
            type="button"
            class="button"
            key={word}
            onClick={() => onChoose(new Date(Date.now() - ms).toISOString())}
          >
            {word}
          </button>
        ))}
      </p>
    </form>
  )
}

/** An instant in words; a value of the address may be none. */
function timeOf(value: string): string {
  return Number.isNaN(Date.parse(value)) ? value : formatInstantShort(value)
}

/** An instant as the browser's field takes it. */
function localOf(at: string): string {
  const when = new Date(at)
  if (Number.isNaN(when.getTime())) return ''
  return new Date(when.getTime() - when.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function TextFilter({ field, value, onChoose }: FieldProps) {
  const [text, setText] = useState(value)
  const [isRefused, setRefused] = useState(false)
  const id = useId()
  return (
    <form
      class="filter-form"
      onSubmit={(event) => {
        event.preventDefault()
        const entered = text.trim()
        const isWrong = field.kind === 'address' && entered !== '' && !ADDRESS.test(entered)
        setRefused(isWrong)
        if (!isWrong) onChoose(entered)
      }}
    >
      <input
        // biome-ignore lint/a11y/noAutofocus: of a field that was opened to be typed into.
        autoFocus
        aria-label={field.label}
        placeholder={field.hint}
        aria-invalid={isRefused}
        aria-describedby={isRefused ? id : undefined}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" class="button main">
        Apply
      </button>
      {isRefused && (
        <p id={id} class="issue" role="alert">
          Enter a whole address, such as {field.hint}.
        </p>
      )}
    </form>
  )
}
