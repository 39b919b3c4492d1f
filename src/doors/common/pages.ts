/**
 * pages - the page that ends before an object, newest first: our lists are read from the top, page by page, until the
 * object comes
 */

import type { Answer } from '../../http/respond.ts'
import { isAccepted, refuseFields } from './own-api.ts'

/** A page of one of our lists. */
export interface OwnPage<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}

/** Reads the page after an object; null: from the top. */
export type ReadPage<Item> = (
  after: string | null,
  limit: number,
) => Promise<OwnPage<Item> | { readonly answer: Answer }>

/** A page of a client's list. */
export type ClientPage<Item> =
  | { readonly items: readonly Item[]; readonly hasMore: boolean }
  | { readonly answer: Answer }

/** The page that a client requests. At most one of `after` and `before` is given. */
export interface PageAsked {
  readonly limit: number
  readonly after?: string | undefined
  readonly before?: string | undefined
}

const PAGE_SIZE = 100
/** Pages that one request reads in search of an object. */
const PAGES_MAX = 50

/** Reads the page that a client asks for; `keep` leaves objects out, which are then read on for. */
export async function readClientPage<Item>(
  read: ReadPage<Item>,
  { limit, after, before }: PageAsked,
  { idOf, keep }: { readonly idOf: (item: Item) => string; readonly keep?: (item: Item) => boolean },
): Promise<ClientPage<Item>> {
  if (after !== undefined && before !== undefined) return refuseBefore('Must not be given together with after')
  const end = before?.toLowerCase()
  const found: Item[] = []
  const size = end === undefined && keep === undefined ? limit : PAGE_SIZE
  let place: string | null = after?.toLowerCase() ?? null
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await read(place, size)
    if ('answer' in page) return page
    const endAt = page.items.findIndex((item) => idOf(item) === end)
    found.push(...page.items.slice(0, endAt < 0 ? page.items.length : endAt).filter(keep ?? (() => true)))
    if (endAt >= 0) return { items: found.slice(-limit), hasMore: found.length > limit }
    place = page.next
    const isFull = end === undefined && found.length >= limit
    if (isFull || place === null) break
  }
  if (end !== undefined) return refuseBefore('Not found among the latest objects: use after instead')
  return { items: found.slice(0, limit), hasMore: found.length > limit || place !== null }
}

function refuseBefore(message: string): { readonly answer: Answer } {
  return { answer: refuseFields([{ path: 'before', message }]) }
}

/** Our page out of the answer of one of our lists. */
export function pageFrom<Item>(answer: Answer, name: string): OwnPage<Item> | { readonly answer: Answer } {
  if (!isAccepted(answer)) return { answer }
  const json = answer.json as Readonly<Record<string, readonly Item[]>> & { readonly next: string | null }
  return { items: json[name] ?? [], next: json.next }
}

/** Items of pages read one after the other; `isWhole` if the last page was among them. */
export type ReadPages<Item> =
  | { readonly items: readonly Item[]; readonly isWhole: boolean; readonly pages: number }
  | { readonly answer: Answer }

/** Reads our pages from the top until enough is found, nothing is left or `pagesMax` pages were read. */
export async function readOwnPages<Item>(
  read: (after: string | null) => Promise<OwnPage<Item> | { readonly answer: Answer }>,
  {
    pagesMax,
    enough = Number.POSITIVE_INFINITY,
    keep = () => true,
  }: { readonly pagesMax: number; readonly enough?: number; readonly keep?: (item: Item) => boolean },
): Promise<ReadPages<Item>> {
  const items: Item[] = []
  let after: string | null = null
  let pages = 0
  do {
    const page: OwnPage<Item> | { readonly answer: Answer } = await read(after)
    if ('answer' in page) return page
    for (const item of page.items) if (keep(item)) items.push(item)
    after = page.next
    pages += 1
  } while (after !== null && pages < pagesMax && items.length < enough)
  return { items, isWhole: after === null, pages }
}
