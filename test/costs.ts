/** Of the runner itself: what it takes from its table, what it says at its end, how much it runs at once. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { type Cost, costOf, describeCosts, FILE_S_MAX, packed, readCosts } from './support/machine/costs.ts'
import { spawnNode } from './support/machine/node.ts'
import { makeOneFile } from './support/machine/one-file.ts'
import { describeFailure, runAgain, runToFile } from './support/machine/run-file.ts'
import { runShared, type Waiting } from './support/machine/share.ts'

t.test('costs: the table, and what is not in it', async (t) => {
  const costs = readCosts('name\tseconds\tprocessor seconds\ncrash/kills\t20.5\t10.0\napart: routes/email\t3.0\t4.0\n')
  t.equal(costs.size, 2)
  t.same(costOf(costs, 'apart: routes/email'), { name: 'apart: routes/email', seconds: 3, cpuSeconds: 4 })
  t.same(costOf(costs, 'dns/sts'), { name: 'dns/sts', seconds: 1, cpuSeconds: 1 })
})

t.test('costs: the end of a run names the slowest, and warns of what is too slow', async (t) => {
  const measured = Array.from({ length: 20 }, (_, n): Cost => ({ name: `file${n}`, seconds: n, cpuSeconds: 1 }))
  const all = [...measured, { name: 'slow', seconds: FILE_S_MAX + 1, cpuSeconds: 2 }]
  const lines = describeCosts(all, { seconds: 77, busySeconds: 30, processes: 21 })
  t.match(lines[0], /^77 s for 21 processes, which took 22 s/)
  t.match(lines[1], /31\.0 s \(2\.0 s of a processor\) slow$/)
  t.match(lines[10], /file11$/)
  t.match(lines[11], /^WARNING: slow took 31 s, 30 s at most/)
  t.equal(lines.length, 12)
  const beside = describeCosts(all, { seconds: 77, busySeconds: 100, processes: 21 })
  t.match(beside[11], /busy for 100 s: the machine did much else/, 'beside other work nobody is blamed')
  t.equal(beside.length, 12)
})

t.test('costs: files that share a process, the longest first, none beyond what a process may take', async (t) => {
  const seconds = new Map(Object.entries({ a: 1, b: 31, c: 20, d: 9, e: 12, f: 1 }))
  const secondsOf = (file: string): number => seconds.get(file) ?? 0
  t.same(packed([...seconds.keys()], secondsOf, 30), [['b'], ['c', 'd', 'a'], ['e', 'f']])
  t.same(packed([], secondsOf, 30), [])
})

t.test('share: as much at once as there is room for, the first first', async (t) => {
  const order: string[] = []
  const ends = new Map<string, () => void>()
  const work = (name: string, share: number): Waiting => ({
    share,
    run() {
      order.push(name)
      return new Promise((resolve) => ends.set(name, resolve))
    },
  })
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.()
    await new Promise(setImmediate)
  }
  const all = runShared(
    [work('large', 1.5), work('half', 0.5), work('one', 1), work('little', 0.2), work('last', 0.1)],
    {
      room: 2,
      mostAtOnce: 3,
    },
  )
  t.same(order, ['large', 'half'])
  await end('half')
  t.same(order, ['large', 'half', 'little', 'last'], 'what fits goes before what does not')
  await end('large')
  t.same(order.at(-1), 'one')
  await Promise.all(['one', 'little', 'last'].map(end))
  await all
  t.equal(order.length, 5)
})

t.test('share: what is larger than all room runs alone', async (t) => {
  let most = 0
  let now = 0
  const run = async (): Promise<void> => {
    most = Math.max(most, ++now)
    await new Promise(setImmediate)
    now -= 1
  }
  const all = Array.from({ length: 3 }, () => ({ share: 9, run }))
  await runShared(all, { room: 2, mostAtOnce: 8 })
  t.equal(most, 1)
})

t.test('run-file: what failed beside others is run once more, but for proofs, and not where much failed', async (t) => {
  const named = (...names: string[]) => names.map((name) => ({ name }))
  t.same(runAgain(named('routes/email', 'apart: crash/kills', 'crash/x', 'http/edge')).length, 0, 'four are too many')
  t.same(runAgain(named('apart: routes/email', 'crash/kills', 'http/edge')), named('apart: routes/email', 'http/edge'))
  t.same(runAgain(named('mistakes/disk', 'simulation/seeds')), [])
})

t.test('run-file: the lines and the exit code of a process; one that does not end is ended', async (t) => {
  const path = join(t.testdir(), 'tap')
  const command = (script: string, timeoutMs = 60_000) => ({
    program: process.execPath,
    args: ['-e', script],
    env: process.env,
    timeoutMs,
  })
  t.equal(await runToFile(command('console.log("    not ok 1 - a\\n      said"); process.exitCode = 3'), path), 3)
  t.match(describeFailure('http/edge', path), [/^WARNING: http\/edge failed/, '      not ok 1 - a', '        said'])
  t.equal(await runToFile(command('setInterval(() => 0, 1000)', 200), path), 1)
  t.equal(await runToFile({ ...command('', 200), program: '/no/such/program' }, path), 1)
})

t.test('one-file: a program with all that it imports, in which each of our modules keeps its place', async (t) => {
  const outfile = join(t.testdir(), 'one.mjs')
  const threaded = join(import.meta.dirname, '../src/reception/returned/parse-room.js')
  await makeOneFile(threaded, outfile)
  const made = readFileSync(`${outfile}.cjs`, 'utf8')
  t.ok(made.includes(`new URL("./parse-thread.js", "${pathToFileURL(threaded).href}")`), 'its thread is found')
  t.notMatch(made, /require\(["']\./, 'nothing of ours is left out')
  await t.rejects(makeOneFile(join(import.meta.dirname, 'no-such-file.js'), outfile), /no-such-file/)
})

t.test(
  'one-file: what one process has compiled is there for the next, and where it is broken nobody minds',
  async (t) => {
    // In the checkout, where the packages are found that it leaves out.
    const dir = mkdtempSync(join(import.meta.dirname, 'one-file-'))
    t.teardown(() => rmSync(dir, { recursive: true, force: true }))
    const outfile = join(dir, 'main.js')
    const compiled = `${outfile}.compiled`
    const run = async () => {
      const child = spawnNode([outfile, '--version'])
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      return { code: code as number, out, err, bytes: readFileSync(compiled) }
    }
    const wanted = { code: 0, out: /^\d+\.\d+\.\d+\n$/, err: '' }
    await makeOneFile(join(import.meta.dirname, 'support/service/main-host.js'), outfile)
    const first = await run()
    t.match(first, wanted)
    const { ino } = statSync(compiled)
    t.match(await run(), wanted)
    t.equal(statSync(compiled).ino, ino, 'it was taken, and not written anew')
    writeFileSync(compiled, first.bytes.subarray(0, 1000))
    t.match(await run(), wanted)
    t.ok(statSync(compiled).size > 1000)
  },
)
