/** poll - polls the shown data while it may still change */
import { useEffect } from 'preact/hooks'

/** Calls every `ms` milliseconds while `isOpen` is true and the page is visible. */
export function usePoll(isOpen: boolean, call: () => void, ms: number): void {
  useEffect(() => {
    if (!isOpen) return
    const timer = setInterval(() => !document.hidden && call(), ms)
    return () => clearInterval(timer)
  }, [isOpen, call, ms])
}
