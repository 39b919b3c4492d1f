/** filters-kept - a list's filters in the browser's history: open ones in the path, addresses never */
import { useSearchParams } from 'wouter-preact'
import { navigate, useHistoryState } from 'wouter-preact/use-browser-location'

type Values = Record<string, string>

/**
 * Keeps filters. Takes the names of filters that are allowed in a path. Returns all filters, and a function that
 * changes them.
 */
export function useKeptFilters(open: readonly string[]): [filters: Values, change: (filters: Values) => void] {
  const [query] = useSearchParams()
  const { filters: hidden = {} } = (useHistoryState() ?? {}) as { filters?: Values }
  const shown = Object.fromEntries(open.flatMap((name) => (query.get(name) ? [[name, query.get(name) ?? '']] : [])))
  const change = (next: Values) => {
    const known = Object.entries(next)
    const path = new URLSearchParams(known.filter(([name]) => open.includes(name)))
    const kept = Object.fromEntries(known.filter(([name]) => !open.includes(name)))
    navigate(`${location.pathname}${path.size > 0 ? `?${path}` : ''}`, { state: { filters: kept } })
  }
  return [{ ...shown, ...hidden }, change]
}
