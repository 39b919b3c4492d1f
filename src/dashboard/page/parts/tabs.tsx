/** tabs - several views with one shown; arrow keys switch between them */
import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'

export interface Tab {
  readonly name: string
  readonly view: () => ComponentChildren
}

/** Tabs with the view of the selected one. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const [chosen, choose] = useState(tabs[0]?.name ?? '')
  const id = useId()
  const at = Math.max(
    0,
    tabs.findIndex(({ name }) => name === chosen),
  )
  const go = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const next = (at + step + tabs.length) % tabs.length
    choose(tabs[next]?.name ?? '')
    document.getElementById(`${id}-${next}`)?.focus()
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label}>
        {tabs.map(({ name }, n) => (
          <button
            type="button"
            role="tab"
            key={name}
            id={`${id}-${n}`}
            aria-selected={n === at}
            aria-controls={`${id}-view`}
            tabIndex={n === at ? 0 : -1}
            onClick={() => choose(name)}
            onKeyDown={go}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-view`} aria-labelledby={`${id}-${at}`} key={tabs[at]?.name}>
        {tabs[at]?.view()}
      </div>
    </>
  )
}
