/** store-change - a store of which some requests are answered differently. */
import type { Store } from './store.ts'

/** Every request of a store. */
const REQUESTS: Readonly<Record<keyof Store, true>> = {
  read: true,
  commit: true,
  acquire: true,
  release: true,
  fenced: true,
  metas: true,
  heartbeat: true,
  retire: true,
  look: true,
  enqueue: true,
  handIn: true,
  entries: true,
  waiting: true,
  listen: true,
  replies: true,
  signal: true,
}

/** The same store, but for what `changes` answers in its place. */
export function changeStore(store: Store, changes: Partial<Store>): Store {
  const bound: Partial<Record<keyof Store, unknown>> = {}
  for (const name of Object.keys(REQUESTS) as (keyof Store)[]) {
    const own = store[name] as (...args: unknown[]) => unknown
    bound[name] = (...args: unknown[]) => own.apply(store, args)
  }
  return { ...(bound as unknown as Store), ...changes }
}
