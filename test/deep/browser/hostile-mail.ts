/**
 * hostile-mail - hostile mail in the frame of the dashboard in a real browser: it reaches no host, and neither the
 * page nor the frame navigates, whatever is clicked. Skipped if there is no Chromium.
 *
 * Every host name leads to one listener, which counts connections.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Browser } from '../../support/clients/browser.ts'
import { startChromium } from '../../support/pages/chromium.ts'
import { startMx } from '../../support/peers/mx.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { startTestService } from '../../support/service/service.ts'

/** The policy of the dashboard's pages. */
const PAGE =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
const SETTLE_MS = 300
/** Mails that are looked at side by side. */
const AT_ONCE = 10
const CLICK_MS = 1_000

const browser = await startChromium('--host-resolver-rules=MAP * 127.0.0.1, EXCLUDE 127.0.0.1')
let connections = 0
const listener = createServer((_req, res) => res.writeHead(200, { 'Access-Control-Allow-Origin': '*' }).end('x'))
listener.on('connection', () => (connections += 1))
await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
const OUT = `http://evil.example:${(listener.address() as AddressInfo).port}`

const CASES: Readonly<Record<string, string>> = {
  script: `<script>fetch('${OUT}/script')</script>`,
  onerror: `<img src=x onerror="fetch('${OUT}/onerror')">`,
  image: `<img src="${OUT}/image">`,
  css: `<div style="background:url(${OUT}/css)">x</div>`,
  import: `<style>@import url(${OUT}/import);</style>`,
  link: `<link rel=stylesheet href="${OUT}/link"><link rel=prefetch href="${OUT}/prefetch"><link rel=preconnect href="${OUT}">`,
  refresh: `<meta http-equiv=refresh content="0;url=${OUT}/refresh">`,
  iframe: `<iframe src="${OUT}/iframe"></iframe>`,
  object: `<object data="${OUT}/object"></object><embed src="${OUT}/embed">`,
  form: `<form action="${OUT}/form"><button id=b>go</button></form>`,
  anchor: `<a id=b href="${OUT}/anchor">go</a>`,
  top: `<a id=b target=_top href="${OUT}/top">go</a>`,
  blank: `<a id=b target=_blank href="${OUT}/blank">go</a>`,
  base: `<base href="${OUT}/"><img src="base">`,
  svg: `<svg><image href="${OUT}/svg"/><use href="${OUT}/use#a"/></svg>`,
  font: `<style>@font-face{font-family:z;src:url(${OUT}/font)}body{font-family:z}</style>x`,
  video: `<video src="${OUT}/video" poster="${OUT}/poster" autoplay></video>`,
  csp: `<meta http-equiv="Content-Security-Policy" content="img-src *"><img src="${OUT}/csp">`,
  self: `<a id=b target=_self href="${OUT}/self">go</a>`,
  parent: `<base target="_parent"><a id=b href="${OUT}/parent">go</a>`,
  ping: `<a id=b target=_self href="#x" ping="${OUT}/ping">go</a>`,
  srcset: `<picture><source srcset="${OUT}/a 1x, ${OUT}/b 2x"><img srcset="${OUT}/c 1x"></picture>`,
  svgScript: `<svg onload="fetch('${OUT}/svgload')"><script href="${OUT}/svgscript"/></svg>`,
  dnsPrefetch: `<meta http-equiv=x-dns-prefetch-control content=on><link rel=dns-prefetch href="${OUT}"><a href="${OUT}/a">x</a>`,
  modulepreload: `<link rel=modulepreload href="${OUT}/m.js"><link rel=preload as=image href="${OUT}/p">`,
  inputImage: `<form action="${OUT}/f" target=_top><input id=b type=image src="${OUT}/i" formaction="${OUT}/g"></form>`,
  srcdoc: `<iframe srcdoc="<script>parent.parent.location='${OUT}/srcdoc'</script><img src='${OUT}/x'>"></iframe>`,
  blobUrl: `<a id=b href="javascript:location='${OUT}/js'">go</a>`,
  cssTricks: `<style>a{cursor:url(${OUT}/cur),auto} li{list-style-image:url(${OUT}/li)} p::before{content:url(${OUT}/before)} svg{mask:url(${OUT}/mask)} body{background-image:image-set('${OUT}/set' 1x)}</style><li><p>x</p><svg/></li>`,
  track: `<audio src="${OUT}/audio" autoplay></audio><video><track default src="${OUT}/track"></video><portal src="${OUT}/portal"></portal><body background="${OUT}/bg">`,
}

const mx = await startMx()
const zone = await startZone()
const service = await startTestService({ RELAY_URL: `smtp://127.0.0.1:${mx.port}`, DNS_SERVERS: zone.server })
t.teardown(async () => {
  await browser.close()
  await service.stop()
  await zone.close()
  await mx.close()
  listener.closeAllConnections()
  listener.close()
})
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { liveServer } = service.firstRun
await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'acme.example' })
const ada = new Browser(origin)
const token = Browser.tokenOf(service.firstRun.dashboardUrl)
await ada.call('POST /links/consume', {
  token,
  address: 'ada@a.example',
  name: 'Ada',
  password: 'correct horse battery',
})

t.test('hostile mail: no part of it reaches a host from its frame [member.frame]', async (t) => {
  const from = 'news@acme.example'
  const messages = Object.values(CASES).map((html) => ({ from, to: ['bob@b.example'], subject: 'Hello', html }))
  const sent = await service.call('POST /v1/email/batch', { token: liveServer.token, body: { messages } })
  t.equal(sent.status, 200, sent.text)
  const context = await browser.newContext()
  const [name = '', value = ''] = (ada.cookie ?? '').split('=')
  await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }])
  await context.route(`${origin}/host/*`, (route) => {
    const id = route.request().url().split('/').at(-1)
    const text = `<!doctype html><title>page</title><iframe sandbox="" src="/dashboard/mail/${liveServer.serverId}/${id}"></iframe>`
    return route.fulfill({ contentType: 'text/html', headers: { 'Content-Security-Policy': PAGE }, body: text })
  })
  const cases = Object.entries(CASES).map(([title, html], at) => {
    return { title, html, messageId: sent.json.messages[at].messageId as string }
  })
  for (let first = 0; first < cases.length; first += AT_ONCE) {
    const before = connections
    const some = cases.slice(first, first + AT_ONCE)
    const pages = await Promise.all(
      some.map(async ({ title, html, messageId }) => {
        const page = await context.newPage()
        await page.goto(`${origin}/host/${messageId}`)
        const frame = page.frames()[1]
        t.equal(frame?.url(), `${origin}/dashboard/mail/${liveServer.serverId}/${messageId}`, `${title}: is shown`)
        t.match(await frame?.content(), '_blank', title)
        if (html.includes('id=b'))
          await frame?.click('#b', { timeout: CLICK_MS, noWaitAfter: true }).catch(() => undefined)
        await page.waitForTimeout(SETTLE_MS)
        t.equal(page.url(), `${origin}/host/${messageId}`, `${title}: the page stays`)
        return page
      }),
    )
    t.equal(connections - before, 0, `${some.map(({ title }) => title)}: reach nobody`)
    t.equal(context.pages().length, some.length, 'and open nothing')
    await Promise.all(pages.map((page) => page.close()))
  }
  await context.close()
})

t.test('hostile mail: the measure sees what does get out', async (t) => {
  const page = await browser.newPage()
  const before = connections
  await page.goto(`${OUT}/`)
  t.ok(connections > before)
  await page.close()
})
