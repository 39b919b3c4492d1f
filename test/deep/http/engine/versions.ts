/**
 * The table of engines and versions of Node.js: the tests of the engines, run by each supported version in addition to
 * this one. uWebSockets.js loads on 20 and 22. Its answers here are those that `node:http` must give everywhere.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { fetchNode, SUPPORTED } from '../../../support/machine/other-node.ts'

const TESTS = fileURLToPath(new URL('../../../', import.meta.url))
const SAME = 'http/engine/engine.js'
const FILES = [SAME, 'http/engine/conformance.js', 'deep/http/engine/smuggling.js', 'deep/http/engine/kinds.js']
/** With a native module of uWebSockets.js. */
const WITH_UWS = ['20', '22']

const dir = mkdtempSync(join(tmpdir(), 'sendwright-versions-'))
const answers = join(dir, 'answers.json')
const own = process.versions.node.split('.')[0]

/** Runs a test file. Returns its exit, and its output. */
async function run(node: string, file: string): Promise<{ code: number; out: string }> {
  const { NODE_OPTIONS: _loader, ...environment } = process.env
  const env = { ...environment, TAP: '1', ANSWERS: answers }
  const args = ['--import', join(TESTS, 'support/machine/preload.js'), join(TESTS, file)]
  const child = spawn(node, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, out: `${out}${err}` }
}

test('versions: the engines on each supported Node.js [http.engine]', async (t) => {
  t.teardown(() => rmSync(dir, { recursive: true }))
  const first = await run(process.execPath, SAME)
  t.equal(first.code, 0, 'this Node.js', { tail: first.code === 0 ? '' : first.out.slice(-4_000) })
  const tried = SUPPORTED.filter((major) => major !== own).map(async (major) => {
    const bin = fetchNode(major, dir)
    if (bin === null) return t.pass(`Node.js ${major}`, { skip: `node-linux-${process.arch} cannot be fetched` })
    for (const file of FILES) {
      const { code, out } = await run(join(bin, 'node'), file)
      t.equal(code, 0, `Node.js ${major}: ${file}`, { tail: code === 0 ? '' : out.slice(-4_000) })
      t.notMatch(out, /Warning: /, `Node.js ${major}: ${file} warns of nothing`)
      if (file === SAME) continue
      const names = [...out.matchAll(/^# Subtest: \w+: (uws|node)\b/gm)].map(([, name]) => name)
      t.same([...new Set(names)].sort(), WITH_UWS.includes(major) ? ['node', 'uws'] : ['node'], `${major}: engines`)
    }
  })
  await Promise.all(tried)
})
