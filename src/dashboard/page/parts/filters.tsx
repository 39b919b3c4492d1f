/** filters - the filters of a list: each a chip, with a field that opens under it */
import { useId, useRef, useState } from 'preact/hooks'
import { wordOf } from '../api/words.ts'
import { Icon } from './icon.tsx'

export interface FilterField {
  readonly name: string
  readonly label: string
  /** Allowed values; if absent, any text. */
  readonly options?: readonly (readonly [value: string, word: string])[]
  /** An example of a text. */
  readonly hint?: string
  /** Whether the search accepts only a complete address. */
  readonly isAddress?: boolean
}

/** Something on both sides of one @. */
const ADDRESS = /^[^\s@]+@[^\s@]+$/

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
  return (
    // biome-ignore lint/a11y/useSemanticElements: it is a row of buttons.
    <div class="filters" role="group" aria-label="Filters">
      {fields.map((field) => (
        <Filter
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          onChange={(value) => change(field.name, value)}
        />
      ))}
      {Object.keys(values).length > 1 && (
        <button type="button" class="button bare" onClick={() => onChange({})}>
          Clear all
        </button>
      )}
    </div>
  )
}

function Filter({ field, value, onChange }: { field: FilterField; value: string; onChange: (value: string) => void }) {
  const { label, options } = field
  const menu = useRef<HTMLDivElement>(null)
  const id = useId()
  const word = options?.find(([one]) => one === value)?.[1] ?? value
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
        {value !== '' && <b>{options === undefined ? word : wordOf(word)}</b>}
      </button>
      {value !== '' && (
        <button type="button" class="pick-off" aria-label={`Remove the filter ${label}`} onClick={() => onChange('')}>
          <Icon name="close" size={13} />
        </button>
      )}
      <div popover="auto" id={id} class="menu-list" ref={menu} style={{ positionAnchor: `--${id}` }}>
        {options === undefined ? (
          <TextFilter field={field} value={value} onChoose={choose} />
        ) : (
          options.map(([one, name]) => (
            <button type="button" key={one} aria-pressed={one === value} onClick={() => choose(one)}>
              {wordOf(name)}
            </button>
          ))
        )}
      </div>
    </div>
  )
}

function TextFilter({
  field,
  value,
  onChoose,
}: {
  field: FilterField
  value: string
  onChoose: (value: string) => void
}) {
  const [text, setText] = useState(value)
  const [isRefused, setRefused] = useState(false)
  const id = useId()
  return (
    <form
      class="filter-form"
      onSubmit={(event) => {
        event.preventDefault()
        const entered = text.trim()
        const isWrong = field.isAddress === true && entered !== '' && !ADDRESS.test(entered)
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
