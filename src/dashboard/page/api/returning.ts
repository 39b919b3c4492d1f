/** returning - whether the shown page was returned to, and the lists that it had then */
let returned = false
addEventListener('popstate', () => {
  returned = true
})
// The router's own event.
addEventListener('pushState', () => {
  returned = false
})

/** Whether the page was entered by the browser's buttons for back and forward. */
export function isReturned(): boolean {
  return returned
}

/** Lists as they were shown last, by path and filters; the oldest is dropped. */
const lists = new Map<string, object>()
const LISTS_MAX = 10

/** Keeps a list for a return. */
export function keepList(name: string, page: object): void {
  lists.delete(name)
  lists.set(name, page)
  const [oldest] = lists.keys()
  if (lists.size > LISTS_MAX && oldest !== undefined) lists.delete(oldest)
}

/** The list of a page that is returned to; null: it is read. */
export function keptList<Page extends object>(name: string): Page | null {
  return returned ? ((lists.get(name) as Page | undefined) ?? null) : null
}
