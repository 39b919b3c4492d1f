/** layout - layout faults that no page may have with any data, measured in the browser at its present width */
import type { Page } from 'playwright-core'

/** Runs in the page. */
const MEASURE = `(() => {
  const faults = []
  const all = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length > 0)
  const text = (one) => (one.textContent ?? '').trim().slice(0, 40)
  const lines = (one) => {
    const range = document.createRange()
    range.selectNodeContents(one)
    const bottoms = [...range.getClientRects()].map(({ bottom }) => bottom)
    return Math.max(...bottoms) - Math.min(...bottoms) > 9 ? 2 : 1
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push('the page is wider than the window')
  for (const table of all('table.rows'))
    if (table.scrollWidth > table.parentElement.clientWidth + 1) faults.push('a table is wider than its card: ' + table.getAttribute('aria-label'))
  for (const code of all('.smtp b')) if (lines(code) > 1) faults.push('a code is broken: ' + text(code))
  for (const chip of all('.chip, .button:not(:has(.unseen)), th')) if (lines(chip) > 1 && !chip.querySelector('b')) faults.push('a word is broken: ' + text(chip))
  for (const title of all('h1')) {
    const height = title.getBoundingClientRect().height
    if (height > 2.2 * parseFloat(getComputedStyle(title).lineHeight)) faults.push('the heading has more than two lines')
  }
  const find = all('.find')[0]?.getBoundingClientRect()
  const bar = all('.bar')[0]?.getBoundingClientRect()
  if (find && (find.bottom > bar.bottom || find.right > innerWidth || find.height > 46)) faults.push('the search stands over its bar')
  if (innerWidth > 720) {
    scrollTo(0, document.documentElement.scrollHeight)
    const side = document.querySelector('.side')?.getBoundingClientRect()
    if (side && Math.abs(side.top) > 1) faults.push('the side scrolls away: ' + side.top)
    scrollTo(0, 0)
  }
  return faults
})()`

/** Faults of the layout that is shown. */
export function layoutFaults(page: Page): Promise<string[]> {
  return page.evaluate(MEASURE)
}
