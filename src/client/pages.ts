/** pages - walks all pages of a list or a search */

/** One page: `next` is the `after` of the following page, null on the last one. */
interface OnePage {
  readonly next: string | null
}

/**
 * The objects of all pages, in the order of the pages.
 * In: how a page is read after an object, and the objects of a page.
 */
export async function* iterate<Page extends OnePage, Item>(
  read: (after: { after?: string }) => Promise<Page>,
  items: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void, undefined> {
  for (let after: { after?: string } = {}; ; ) {
    const page = await read(after)
    yield* items(page)
    // A page that names itself would be read for ever.
    if (page.next === null || page.next === after.after) return
    after = { after: page.next }
  }
}
