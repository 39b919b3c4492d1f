/** crumbs - where the reader is: the way to the page, and its title */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

interface Crumb {
  readonly word: string
  readonly href?: string
}

/** The way to the page that is shown; the last one is the page itself. */
export const crumbs = signal<readonly Crumb[]>([])

/** Says where the reader is. */
export function usePlace(...way: readonly Crumb[]): void {
  const name = JSON.stringify(way)
  useEffect(() => {
    crumbs.value = way
    document.title = `${way[way.length - 1]?.word ?? 'Dashboard'} · Sendwright`
  }, [name])
}
