/** again - polls the shown data while it may still change */
import { useEffect } from 'preact/hooks'

/** Calls as long as it is open and the page is seen. In: ms between two calls. */
export function useAgain(isOpen: boolean, call: () => void, ms: number): void {
  useEffect(() => {
    if (!isOpen) return
    const timer = setInterval(() => !document.hidden && call(), ms)
    return () => clearInterval(timer)
  }, [isOpen, call, ms])
}
