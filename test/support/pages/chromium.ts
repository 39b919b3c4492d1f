/**
 * chromium - a real browser for the tests of pages, with its findings and the forbidden actions of a page
 *
 * The tests are skipped visibly if there is no Chromium.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import t from 'tap'
import { until } from '../machine/until.ts'

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** On a busy machine a page takes its time. */
const WAIT_MS = 60_000

/** Starts the browser. In: additional flags. Without a browser the file ends. */
export async function startChromium(...flags: readonly string[]): Promise<Browser> {
  const executablePath = PATHS.find(existsSync)
  if (executablePath === undefined) {
    t.pass('Chromium is not installed: skipped')
    process.exit(0)
  }
  const browser = await chromium.launch({ executablePath, args: [...FLAGS, ...flags] })
  t.teardown(() => browser.close())
  return browser
}

/** A page, and its forbidden actions: lines of its console, requests to other hosts. */
export interface WatchedPage {
  readonly page: Page
  readonly faults: string[]
  /** Requests since it was opened. */
  readonly requests: string[]
}

/** Opens a page in a context. In: the only origin that it may request. */
export async function watchedPage(context: BrowserContext, origin: string): Promise<WatchedPage> {
  const page = await context.newPage()
  page.setDefaultTimeout(WAIT_MS)
  const faults: string[] = []
  const requests: string[] = []
  page.on('console', (line) => {
    if (['error', 'warning'].includes(line.type())) faults.push(line.text())
  })
  page.on('pageerror', (error) => faults.push(error.stack ?? error.message))
  page.on('request', (request) => {
    requests.push(request.url())
    if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith('data:')) faults.push(request.url())
  })
  return { page, faults, requests }
}

/** Waits until nothing of a page is still on its way. */
export async function untilShown(page: Page): Promise<void> {
  await until(async () => ((await page.locator('.skeleton').count()) === 0 ? true : null), WAIT_MS)
}

/** The findings of axe on a page. In: the rules that are checked; absent: all. */
export async function findingsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  // From outside, where the page's policy does not apply.
  const session = await page.context().newCDPSession(page)
  const options = {
    resultTypes: ['violations'],
    ...(rules !== undefined && { runOnly: { type: 'rule', values: rules } }),
  }
  const show = `({id,nodes})=>id+' '+nodes.map(({target})=>target.join(' ')).slice(0,3).join(', ')`
  const run = `axe.run(document,${JSON.stringify(options)}).then(({violations})=>JSON.stringify(violations.map(${show})))`
  const evaluate = (expression: string) =>
    session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
  const { result: known } = await evaluate('typeof axe')
  if (known.value === 'undefined') await evaluate(`${AXE};0`)
  const { result, exceptionDetails } = await evaluate(run)
  await session.detach()
  if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? 'axe did not run')
  return JSON.parse(result.value as string)
}

/** The folder of pictures: `PICTURES`, or a temporary one. */
export function pictureFolder(): string {
  const named = process.env.PICTURES
  if (named === undefined) return mkdtempSync(join(tmpdir(), 'sendwright-pictures-'))
  mkdirSync(named, { recursive: true })
  return named
}

/** Widths and schemes in which pages are examined. */
export const VIEWS = [
  { width: 1280, height: 860 },
  { width: 375, height: 812 },
] as const
export const SCHEMES = ['light', 'dark'] as const

/** Saves a picture of a page in every width and scheme; without `PICTURES` none. */
export async function keepPictures(page: Page, name: string): Promise<void> {
  if (process.env.PICTURES === undefined) return
  const folder = pictureFolder()
  for (const view of VIEWS)
    for (const scheme of SCHEMES) {
      await page.setViewportSize(view)
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
      await page.screenshot({ path: join(folder, `${name}-${scheme}-${view.width}.png`), fullPage: true })
    }
  await page.setViewportSize(VIEWS[0])
  await page.emulateMedia({ colorScheme: SCHEMES[0], reducedMotion: 'reduce' })
}
