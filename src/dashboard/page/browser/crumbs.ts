/** crumbs - the position of the page in the navigation, and its title */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

interface Crumb {
  readonly word: string
  readonly href?: string
}

/** The way to the page that is shown; the last one is the page itself. */
export const crumbs = signal<readonly Crumb[]>([])

/** Sets the position of the page. */
export function usePlace(...way: readonly Crumb[]): void {
  const name = JSON.stringify(way)
  useEffect(() => {
    crumbs.value = way
    document.title = `${way[way.length - 1]?.word ?? 'Dashboard'} · Sendwright`
  }, [name])
}
