/**
 * application - the example application, tested end to end as its developers would: with Node's test runner, with
 * pytest and with Playwright, at most ten lines for each mail.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Sendwright } from '../../src/client/sendwright.ts'
import { ROOT } from '../support/machine/root.ts'
import { startChromium } from '../support/pages/chromium.ts'
import { startTestService } from '../support/service/service.ts'

const FOLDER = join(ROOT, 'test/support/application')
const LINES_MAX = 10
const service = await startTestService()
const token = service.firstRun.testServer.token
const url = `http://127.0.0.1:${service.config.httpPort}`
// The runner's loader is not the children's.
const { NODE_OPTIONS: _loader, ...inherited } = process.env
const env: NodeJS.ProcessEnv = { ...inherited, SENDWRIGHT_TOKEN: token, SENDWRIGHT_URL: url }
const application = spawn(process.execPath, [join(FOLDER, 'application.mjs')], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
})
t.teardown(async () => {
  application.kill()
  await service.stop()
})
const [started] = await once(application.stdout, 'data')
const origin = String(started).trim()
env.APPLICATION = origin

/** Runs a program beside the service, which is in this process. */
async function run(program: string, args: readonly string[]): Promise<{ code: number; out: string }> {
  const child = spawn(program, args, { env, cwd: FOLDER })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (out += piece))
  const [code] = await once(child, 'close')
  return { code, out }
}

t.test('application: with the test runner of Node.js', async (t) => {
  const { code, out } = await run(process.execPath, ['--test', 'application.test.mjs'])
  t.equal(code, 0, out)
  t.match(out, /pass 2/)
})

t.test('application: with pytest', async (t) => {
  if (spawnSync('python3', ['-m', 'pytest', '--version']).status !== 0)
    return t.pass('pytest', { skip: 'pytest is not installed' })
  const { code, out } = await run('python3', ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'test_application.py'])
  t.equal(code, 0, out)
  t.match(out, /2 passed/)
})

t.test('application: with Playwright', async (t) => {
  const browser = await startChromium()
  const page = await browser.newPage()
  const { messages } = new Sendwright({ key: token, url })
  const email = 'playwright@simulator.test'
  const fill = async (path: string, fields: Record<string, string>) => {
    await page.goto(path.startsWith('http') ? path : origin + path)
    for (const [name, value] of Object.entries(fields)) await page.getByLabel(name).fill(value)
    await page.getByRole('button', { name: 'Send' }).click()
  }
  // Sign-up.
  await fill('/sign-up', { email, password: 'first' })
  const { links } = await messages.wait({ recipient: email, subject: 'confirm' })
  await page.goto(links[0]?.href ?? '')
  t.equal(await page.textContent('body'), 'Your address is confirmed')
  // Password reset.
  await fill('/forgot', { email })
  const reset = await messages.wait({ recipient: email, subject: 'reset password' })
  await fill(reset.links[0]?.href ?? '', { password: 'second' })
  t.equal(await page.textContent('body'), 'Your password is changed')
  await page.close()
})

t.test('application: a mail takes at most ten lines of a test', async (t) => {
  const tests = {
    'application.test.mjs': /^test\(.*\n((?: {2}.*\n)+)/gm,
    'test_application.py': /^def test_.*\n((?: {4}.*\n)+)/gm,
  }
  for (const [name, body] of Object.entries(tests)) {
    const found = [...readFileSync(join(FOLDER, name), 'utf8').matchAll(body)]
    t.equal(found.length, 2, name)
    for (const [, lines = ''] of found) t.ok(lines.trim().split('\n').length <= LINES_MAX, name)
  }
})
