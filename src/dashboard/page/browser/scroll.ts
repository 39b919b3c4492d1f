/** scroll - a new page begins at its top; a page that is returned to is shown where it was left */
import { useEffect } from 'preact/hooks'
import { isReturned } from '../api/returning.ts'

/** Positions of left pages, by their address and filters; the oldest is dropped. */
const left = new Map<string, number>()
const LEFT_MAX = 30
/** How long a page that is returned to may take until it is as long as it was. */
const GROWS_MS = 3_000

/** The name of the shown page among those that may be returned to. */
function placeName(): string {
  return `${location.pathname}${location.search} ${JSON.stringify(history.state ?? null)}`
}

/** Keeps the position of each page. Takes its path. */
export function useScroll(path: string): void {
  useEffect(() => {
    history.scrollRestoration = 'manual'
    const name = placeName()
    const wanted = isReturned() ? (left.get(name) ?? 0) : 0
    const stop = scrollWhenLong(wanted)
    const keep = () => {
      // A change of address comes before its page.
      if (placeName() !== name) return
      left.delete(name)
      left.set(name, scrollY)
      for (const oldest of left.keys()) {
        if (left.size <= LEFT_MAX) break
        left.delete(oldest)
      }
    }
    addEventListener('scroll', keep, { passive: true })
    return () => {
      stop()
      removeEventListener('scroll', keep)
    }
  }, [path])
}

/** Scrolls as soon as the page is long enough, unless the user scrolls first. Returns a function that gives up. */
function scrollWhenLong(wanted: number): () => void {
  scrollTo(0, wanted)
  const endMs = performance.now() + GROWS_MS
  let frame = 0
  const again = () => {
    if (Math.abs(scrollY - wanted) < 2 || performance.now() > endMs) return
    scrollTo(0, wanted)
    frame = requestAnimationFrame(again)
  }
  if (wanted > 0) frame = requestAnimationFrame(again)
  const stop = () => cancelAnimationFrame(frame)
  addEventListener('wheel', stop, { once: true, passive: true })
  addEventListener('touchmove', stop, { once: true, passive: true })
  return stop
}
