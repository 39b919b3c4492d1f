/** main - the command line as a process: what it prints, and its exit codes. */
import { text } from 'node:stream/consumers'
import t from 'tap'
import { spawnNode } from '../support/machine/node.ts'
import { sendwright } from '../support/service/command-line.ts'

t.test('sendwright: 0 done, 1 refused or failed, 2 wrongly called', async (t) => {
  const [version, failed, wrong] = await Promise.all([
    sendwright(['--version']),
    sendwright(['domain', 'list']),
    sendwright(['sned']),
  ])
  t.match(version, { code: 0, out: /^\d+\.\d+\.\d+\n$/, err: '' })
  t.match(failed, { code: 1, out: '', err: /^No API key: / })
  t.match(wrong, { code: 2, out: '', err: /unknown command 'sned'/ })
})

t.test('sendwright: a command loads no package that it does not need', async (t) => {
  const program = new URL('../../src/cli/program.js', import.meta.url).href
  const code = `
    import { createRequire } from 'node:module'
    const { makeProgram } = await import(${JSON.stringify(program)})
    makeProgram(() => undefined)
    console.log(JSON.stringify(Object.keys(createRequire(import.meta.url)('node:module')._cache)))`
  const child = spawnNode(['--input-type=module', '-e', code])
  const paths = JSON.parse(await text(child.stdout)) as string[]
  const packages = new Set(paths.map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]))
  t.same([...packages].sort(), ['commander', 'ipaddr.js'], 'each of them costs every command its time')
})
