/** pages - a list of the service, page after page. */
import type { Client } from './client.ts'

const PAGE = 100
/** 100,000 objects: more are not looked at in a terminal. */
const PAGES_MAX = 1000

/** All objects of a list. In: its path without a query, and the name of the list in the answer. */
export async function readAll<Item>(client: Client, path: string, name: string): Promise<Item[]> {
  const items: Item[] = []
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await client.get<{ next: string | null } & Record<string, unknown>>(`${path}?limit=${PAGE}${after}`)
    items.push(...(answer[name] as Item[]))
    if (answer.next === null) break
    after = `&after=${answer.next}`
  }
  return items
}
