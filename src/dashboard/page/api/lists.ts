/** lists - the lists of the interface, page by page: by GET with a query, by POST with filters */
import { call, formatQuery } from './call.ts'
import { type LoadedList, useList } from './load.ts'

const ROWS = 50

type Listed = Readonly<Record<string, unknown>> & { readonly next: string | null }

/** A list that GET answers. Takes the name of its rows in the answer, and its filters. */
export function useGetList<Row>(
  path: string,
  name: string,
  filters: Readonly<Record<string, string | undefined>> = {},
): LoadedList<Row> {
  return useList<Row>(
    async (after, signal) => {
      const query = formatQuery({ ...filters, limit: ROWS, after })
      const answer = await call<Listed>('GET', path + query, signal === undefined ? {} : { signal })
      return { rows: answer[name] as Row[], next: answer.next }
    },
    [path, filters],
  )
}

/** A list from a search by POST, whose filters are in no path. */
export function useSearchList<Row>(
  path: string,
  name: string,
  filters: Readonly<Record<string, unknown>> = {},
): LoadedList<Row> {
  return useList<Row>(
    async (after, signal) => {
      const body = { ...filters, limit: ROWS, ...(after !== null && { after }) }
      const answer = await call<Listed>('POST', path, { body, ...(signal !== undefined && { signal }) })
      return { rows: answer[name] as Row[], next: answer.next }
    },
    [path, filters],
  )
}
