/** dashboard - a running service with a signed-in user, in a real browser */
import type { BrowserContext, BrowserContextOptions, Browser as Chromium } from 'playwright-core'
import { Browser } from '../clients/browser.ts'
import { startTestService, type TestService } from '../service/service.ts'
import { startChromium } from './chromium.ts'

const PASSWORD = 'correct horse battery'

export interface DashboardRig {
  readonly service: TestService
  /** The public listener under a name that browsers trust without TLS. */
  readonly origin: string
  readonly chromium: Chromium
  /** The first user, an administrator, by the interface. */
  readonly administrator: Browser
  readonly address: string
  readonly password: string
  readonly testServerId: string
  readonly liveServerId: string
  /** A context of the browser that is signed in. */
  signedIn(options?: BrowserContextOptions): Promise<BrowserContext>
  stop(): Promise<void>
}

/** Starts it. In: settings that override those of the tests, and further parameters of the service. */
export async function startDashboard(
  settings: Readonly<Record<string, string>> = {},
  options: Parameters<typeof startTestService>[1] = {},
): Promise<DashboardRig> {
  const chromium = await startChromium()
  const service = await startTestService(settings, options)
  const origin = `http://127.0.0.1:${service.config.httpPort}`
  const administrator = new Browser(origin)
  const address = 'grace@northwind.example'
  const token = Browser.tokenOf(service.firstRun.dashboardUrl)
  const body = { token, address, name: 'Grace Hopper', password: PASSWORD }
  const made = await administrator.call('POST /links/consume', body)
  if (made.status !== 200) throw new Error(`Nobody came in: ${made.text}`)
  return {
    service,
    origin,
    chromium,
    administrator,
    address,
    password: PASSWORD,
    testServerId: service.firstRun.testServer.serverId,
    liveServerId: service.firstRun.liveServer.serverId,
    async signedIn(options = {}) {
      const context = await chromium.newContext(options)
      const [name = '', value = ''] = (administrator.cookie ?? '').split('=')
      await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }])
      return context
    },
    stop: () => service.stop(),
  }
}
