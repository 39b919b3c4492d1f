/** opening - pages that open their form at once, because an action of the search led there */
import { useEffect } from 'preact/hooks'
import { useHistoryState } from 'wouter-preact/use-browser-location'

/** Calls `open` if the page was entered by an action; not again after a reload. */
export function useOpening(open: () => void): void {
  const state = useHistoryState() as { readonly opens?: boolean } | null
  useEffect(() => {
    if (state?.opens !== true) return
    history.replaceState({ ...state, opens: false }, '')
    open()
  }, [state])
}
