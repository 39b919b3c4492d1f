/**
 * load - the data of a page, loaded when it opens and again on request
 *
 * Guarantees: an answer that arrives after the page has changed is dropped; shown data stays while it is read again,
 * and a failure is shown next to it.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './call.ts'
import { returns } from './connection.ts'
import { keepList, keptList } from './returning.ts'

/** The state of loaded data. */
export interface Loaded<Value> {
  readonly value: Value | null
  readonly error: ApiError | null
  readonly isLoading: boolean
  reload(): void
  /** Replaces the value, by the answer of a write. */
  set(value: Value): void
}

/**
 * Loads once for each change of `keys`. `load` is null while there is nothing to load. `kept` is shown in place of the
 * first load.
 */
export function useLoad<Value>(
  load: ((signal: AbortSignal) => Promise<Value>) | null,
  keys: readonly unknown[],
  kept: Value | null = null,
): Loaded<Value> {
  const [state, setState] = useState<{ value: Value | null; error: ApiError | null; isLoading: boolean }>({
    value: kept,
    error: null,
    isLoading: load !== null && kept === null,
  })
  const [turn, setTurn] = useState(0)
  const name = JSON.stringify(keys)
  const shown = useRef<string>(kept === null ? '' : name)
  const isKept = useRef(kept !== null)
  useEffect(() => {
    if (load === null) return
    if (isKept.current) {
      isKept.current = false
      return
    }
    const gone = new AbortController()
    const isSame = shown.current === name
    shown.current = name
    setState((before) => ({ value: isSame ? before.value : null, error: null, isLoading: true }))
    load(gone.signal).then(
      (value) => !gone.signal.aborted && setState({ value, error: null, isLoading: false }),
      (error: unknown) => {
        if (gone.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        setState((before) => ({ ...before, error, isLoading: false }))
      },
    )
    return () => gone.abort()
  }, [name, turn])
  const reload = useCallback(() => setTurn((n) => n + 1), [])
  // What failed while the service could not be reached is read again once it can.
  const back = returns.value
  useEffect(() => {
    if (back > 0 && state.error !== null) reload()
  }, [back])
  const set = useCallback((value: Value) => setState({ value, error: null, isLoading: false }), [])
  return { ...state, reload, set }
}

/** A page of a list. */
export interface ListPage<Row> {
  readonly rows: readonly Row[]
  readonly next: string | null
}

/** A list as far as it has been asked for. */
export interface LoadedList<Row> extends Loaded<ListPage<Row>> {
  /** Null at the end. */
  readonly more: (() => void) | null
  readonly isLoadingMore: boolean
  /** Whether it was shown before, and may have changed since. */
  readonly isKept: boolean
  /**
   * Reads the first page again: shown rows change in place. Returns the number of new rows, which wait for `reload`.
   */
  refresh(keyOf: (row: Row) => string): Promise<number>
}

/** Loads a list page by page. Takes a function that loads the page after a cursor (null for the first). */
export function useList<Row>(
  load: (after: string | null, signal?: AbortSignal) => Promise<ListPage<Row>>,
  keys: readonly unknown[],
): LoadedList<Row> {
  const name = JSON.stringify(keys)
  const [kept] = useState(() => keptList<ListPage<Row>>(name))
  const first = useLoad<ListPage<Row>>((signal) => load(null, signal), keys, kept)
  const [isLoadingMore, setLoadingMore] = useState(false)
  const { value, set } = first
  useEffect(() => {
    if (value !== null) keepList(name, value)
  }, [value])
  const shown = useRef({ value, name })
  shown.current = { value, name }
  const refresh = async (keyOf: (row: Row) => string): Promise<number> => {
    if (shown.current.value === null) return 0
    const page = await load(null)
    const { value: now, name: nameNow } = shown.current
    if (now === null || nameNow !== name) return 0
    const { rows, fresh } = mergeRows(now.rows, page.rows, keyOf)
    set(now.rows.length === 0 ? page : { rows, next: now.next })
    return fresh
  }
  const more = async () => {
    if (value === null || value.next === null) return
    setLoadingMore(true)
    try {
      const page = await load(value.next)
      set({ rows: [...value.rows, ...page.rows], next: page.next })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    } finally {
      setLoadingMore(false)
    }
  }
  return {
    ...first,
    more: value?.next == null ? null : () => void more(),
    isLoadingMore,
    isKept: kept !== null,
    refresh,
  }
}

/** The shown rows with current values, and the number of newer rows in a first page. */
function mergeRows<Row>(shown: readonly Row[], page: readonly Row[], keyOf: (row: Row) => string) {
  const known = new Map(page.map((row) => [keyOf(row), row]))
  const keys = new Set(shown.map(keyOf))
  const above = page.findIndex((row) => keys.has(keyOf(row)))
  const fresh = shown.length === 0 ? 0 : above < 0 ? page.length : above
  return { rows: shown.map((row) => known.get(keyOf(row)) ?? row), fresh }
}
