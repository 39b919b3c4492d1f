/**
 * cluster-guide - the commands of docs/operate/cluster.md run against real Redis servers on their own ports, and the
 * result is a cluster that the service accepts
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import t from 'tap'
import { parse } from 'yaml'
import { type ClusterLook, lookAtCluster, replicasInStep } from '../../cluster/slots/cluster-look.ts'
import { clusterFaults } from '../../cluster/slots/cluster-rules.ts'
import { blocksOf } from '../support/documents/blocks.ts'
import { freePorts } from '../support/machine/port.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'

const WAIT_MS = 60_000
const MACHINES = 5
const EACH = 3
const dir = mkdtempSync(join(process.env.STORES_DIR ?? tmpdir(), 'sendwright-guide-'))
const first = await freePorts(MACHINES * EACH + 1, { withBus: true })
/** `10.0.0.<machine>:700<n>` of the document. */
const portOf = (machine: number, n: number): number => first + (machine - 1) * EACH + n - 1
const onePort = first + MACHINES * EACH
const running = new Set<number>()
t.teardown(async () => {
  const ends = [...running].map(async (port) => {
    const client = new Redis(port, { retryStrategy: () => null })
    client.on('error', () => undefined)
    await client.shutdown('NOSAVE').catch(() => undefined)
    client.disconnect()
  })
  await Promise.all(ends)
  rmSync(dir, { recursive: true, force: true })
})

const blocks = blocksOf('docs/operate/cluster.md').map(({ code }) => code)

/** The one block of the document that holds a text. */
function block(holds: string): string {
  const found = blocks.filter((code) => code.includes(holds))
  if (found.length !== 1) throw new Error(`${found.length} blocks of docs/operate/cluster.md hold ${holds}`)
  return found[0] ?? ''
}

/** As it is typed here: other hosts, other ports. */
function here(code: string): string {
  return code
    .replace(/10\.0\.0\.(\d):700(\d)/g, (_, machine, n) => `127.0.0.1:${portOf(Number(machine), Number(n))}`)
    .replace(/-h 10\.0\.0\.(\d) -p 7001/g, (_, machine) => `-h 127.0.0.1 -p ${portOf(Number(machine), 1)}`)
    .replace('CLUSTER MEET 10.0.0.1 7001', `CLUSTER MEET 127.0.0.1 ${portOf(1, 1)}`)
    .replace(/(?:10\.0\.0\.1|127\.0\.0\.1):6379/g, `127.0.0.1:${onePort}`)
    .replaceAll('/var/lib/redis', dir)
    .replace(/--cluster create /g, '--cluster-yes --cluster create ')
}

async function run(code: string, env: Record<string, string> = {}): Promise<string> {
  const { NODE_OPTIONS: _loader, ...inherited } = process.env
  const path = `${ROOT}:${process.env.PATH}`
  const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', 'sh', '-eu'], {
    cwd: dir,
    env: { ...inherited, PATH: path, ...env },
  })
  child.stdin.end(code)
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (status !== 0) throw new Error(`${code}\n${out}\n${err}`)
  return out
}

/** A Redis in the background answers a moment after its start has returned. */
async function answers(port: number): Promise<void> {
  await until(async () => (await run(`redis-cli -p ${port} ping 2>&1 || true`)).startsWith('PONG'), WAIT_MS)
}

/** The three Redis of a machine, as the document starts them. */
async function startMachine(machine: number): Promise<void> {
  const ports = [1, 2, 3].map((n) => portOf(machine, n))
  for (const port of ports) {
    mkdirSync(join(dir, String(port)))
    running.add(port)
  }
  const code = block('for port in').replace('7001 7002 7003', ports.join(' ')).replace('10.0.0.1', '127.0.0.1')
  await run(here(code))
  await Promise.all(ports.map(answers))
}

async function look(port: number): Promise<ClusterLook> {
  const seen = await lookAtCluster([`redis://127.0.0.1:${port}`])
  if (seen === null) throw new Error('Nobody answers')
  return seen
}

const isInStep = ({ nodes }: ClusterLook, count: number): boolean =>
  nodes.length === count &&
  nodes.every(
    ({ isPrimary, answers }) => answers?.isWell && (isPrimary || answers.info.get('master_link_status') === 'up'),
  )

const shardsOf = ({ nodes }: ClusterLook): number[] =>
  nodes.flatMap(({ isPrimary, shards }) => (isPrimary ? [shards.length] : [])).sort((a, b) => a - b)

t.jobs = 2
t.test(
  'guide: nine Redis on three machines, a fourth machine, shards evened out and moved',
  { buffered: true },
  async (t) => {
    await Promise.all([1, 2, 3].map(startMachine))
    await run(here(block('--cluster create')))
    const nine = await until(async () => {
      const seen = await look(portOf(1, 1))
      return isInStep(seen, 9) ? seen : null
    }, WAIT_MS)
    t.same(clusterFaults(nine, 'replica'), [])
    t.same(shardsOf(nine), [80, 83, 93], 'as the document says')
    for (const { name } of nine.nodes.slice(0, 3)) t.equal(replicasInStep(nine, name), 2)

    const env = Object.fromEntries(
      here(block('DURABILITY=replica\n'))
        .split('\n')
        .flatMap((line) => (line.includes('=') ? [line.split(/=(.*)/s)] : [])),
    ) as Record<string, string>
    const settings = { REDIS_URL: env.REDIS_URL ?? '', DURABILITY: env.DURABILITY ?? '' }
    await startMachine(4)
    await run(here(block('CLUSTER MEET')))
    await until(async () => isInStep(await look(portOf(1, 1)), 12), WAIT_MS)
    t.match(await run('sendwright cluster plan 3', settings), /3 +8\d.* CLUSTER ADDSLOTSRANGE \d+ 16383/)
    await run('sendwright cluster plan | sh', settings)
    t.same(shardsOf(await look(portOf(1, 1))), [64, 64, 64, 64])
    const moved = await run(here(block('cluster move')), settings)
    t.equal(moved.trim().split('\n').length, 5)
    t.match(
      await run(`sendwright cluster plan --without 127.0.0.1:${portOf(4, 1)}`, settings),
      /^sendwright cluster move /,
    )
  },
)

t.test('guide: one Redis with its data becomes a cluster, and gets a second primary', { buffered: true }, async (t) => {
  const start = async (port: number, ...more: string[]): Promise<void> => {
    running.add(port)
    mkdirSync(join(dir, String(port)), { recursive: true })
    const settings = block('for port in').match(/--append.*--no-append\S+ no/)?.[0] ?? ''
    const kind = `--daemonize yes --save '' --bind 127.0.0.1 --dir ${join(dir, String(port))}`
    await run(`redis-server --port ${port} ${kind} ${settings} --maxmemory-policy noeviction ${more.join(' ')}`)
    await answers(port)
  }
  const nodeSettings = ['--cluster-enabled yes', '--cluster-require-full-coverage no']
  await start(onePort)
  const client = new Redis(onePort)
  t.teardown(() => client.disconnect())
  await client.set('{s017}:something', 'kept')
  await client.shutdown('NOSAVE').catch(() => undefined)
  await start(onePort, ...nodeSettings)
  await run(here(block('--cluster fix')))
  await until(async () => (await look(onePort)).uncovered.length === 0, WAIT_MS)
  t.equal(await client.get('{s017}:something'), 'kept')
  const other = portOf(MACHINES, 1)
  await start(other, ...nodeSettings)
  const env = { REDIS_URL: `redis://127.0.0.1:${onePort}`, DURABILITY: 'fsync' }
  await run(here(block('add-node 10.0.0.2:7001').replace('10.0.0.2', '10.0.0.5')), env)
  t.same(shardsOf(await look(other)), [128, 128])
  t.equal((await lookAtCluster([`redis://127.0.0.1:${other}`]))?.nodes.length, 2)
})

t.test('guide: the trial of a cluster starts Redis with the same settings', async (t) => {
  const wanted = [
    '--appendonly yes',
    '--appendfsync always',
    '--no-appendfsync-on-rewrite no',
    '--maxmemory-policy noeviction',
  ]
  const script = readFileSync(join(ROOT, 'docs/deploy/local-cluster.sh'), 'utf8')
  const compose = parse(readFileSync(join(ROOT, 'docs/deploy/cluster.compose.yaml'), 'utf8'), { merge: true })
  const commands = [script, block('for port in'), String(compose.services.r9.command)]
  for (const command of commands)
    for (const one of [...wanted, '--cluster-require-full-coverage no', '--cluster-enabled yes'])
      t.ok(command.includes(one), one)
})

t.test('guide: the commands of the compose file make a cluster that a start with replicas takes', async (t) => {
  const text = readFileSync(join(ROOT, 'docs/deploy/cluster.compose.yaml'), 'utf8')
  const { services, networks } = parse(text, { merge: true })
  const names = Object.keys(services).filter((name) => /^r\d$/.test(name))
  t.equal(names.length, 9)
  const places = names.map((name) => services[name].networks.default.ipv4_address as string)
  t.equal(new Set(places).size, 9, 'an address each')
  const [{ subnet }] = networks.default.ipam.config
  t.ok(places.every((place) => place.startsWith(subnet.replace(/0\/24$/, ''))))
  const lowest = await freePorts(9, { withBus: true })
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-compose-'))
  const nodes = names.map((name, n) => {
    const data = join(folder, name)
    mkdirSync(data)
    const command = String(services[name].command)
      .replace('--port 7001', `--port ${lowest + n} --bind 127.0.0.1`)
      .replace('--dir /data', `--dir ${data}`)
    return spawn('sh', ['-c', `exec ${command}`], { stdio: 'ignore' })
  })
  t.teardown(async () => {
    for (const node of nodes) {
      const gone = once(node, 'exit')
      node.kill('SIGKILL')
      await gone
    }
    rmSync(folder, { recursive: true, force: true })
  })
  // As compose reads it; each name is a port here.
  const create = String(services.create.command)
    .replace(/for node in [r\d ]+;/, `for port in ${nodes.map((_, n) => lowest + n).join(' ')};`)
    .replace('-h $$node -p 7001', '-p $port')
    .replace(/-h r(\d) -p 7001/g, (_, n) => `-p ${lowest + Number(n) - 1}`)
    .replace(/\br(\d):7001/g, (_, n) => `127.0.0.1:${lowest + Number(n) - 1}`)
  t.notMatch(create, /7001/)
  const run = () => spawnSync('sh', ['-c', create], { encoding: 'utf8', timeout: 60_000 })
  const made = run()
  t.equal(made.status, 0, made.stdout + made.stderr)
  const seeds = nodes.map((_, n) => `redis://127.0.0.1:${lowest + n}`)
  await until(async () => {
    const look = await lookAtCluster(seeds)
    return look !== null && look.uncovered.length === 0 && clusterFaults(look, 'replica').length === 0
  }, 60_000)
  const again = run()
  t.equal(again.status, 0, again.stdout + again.stderr)
  t.notMatch(again.stdout, /Performing hash slots allocation/, 'a second start joins nothing')
})
