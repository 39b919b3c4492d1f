/**
 * main - `npm run chaos`: faults against several processes under load, with a real budget, and a report that can fail.
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { POWER_DISK_SKIP } from '../support/machine/power-disk.ts'
import { runSegmentKills } from '../support/service/segment-kills.ts'
import { makeRandom } from '../support/store/random-ops.ts'
import { failuresOfBroadcasts, runBroadcasts } from './broadcasts.ts'
import { failuresOfDamage, runDamage } from './damage.ts'
import { failuresOfFailovers, runFailovers } from './failovers.ts'
import { failuresOfHalfDead, runHalfDead } from './half-dead.ts'
import { failuresOfJointCuts, runJointCuts } from './joint-cuts.ts'
import { failuresOfLoss, runLoss } from './losses.ts'
import { failuresOfMistakes, runMistakes } from './mistakes.ts'
import { describePartitions, runPartitions } from './partitions.ts'
import { failuresOfPowerCuts, lostByMemory, runPowerCuts } from './power-cuts.ts'
import { WAYS } from './primary-losses.ts'
import { describeChaos, failuresOf } from './report.ts'
import { runChaos } from './run.ts'
import { failuresOfUpgrade, runUpgrade } from './upgrade.ts'

const HELP = `Usage: npm run chaos [-- options]

  --kills N    processes and stores killed one at a time (100)
  --falls N    kills of all processes together (5)
  --stops N    owners frozen for 15 s (20)
  --rolls N    restarts of every process, one by one (5)
  --cuts N     rounds of ten connections to the store cut at any byte (20)
  --storms N   64 requests with one Idempotency-Key, killed in the middle (20)
  --freezes N     owners frozen for 10 to 40 s while receivers are slow (30)
  --partitions N  owners cut off from the store for 5 to 45 s, in every way (30)
  --ills N     rounds of owners and listeners of which one connection is held or slow (2)
  --losses N   failovers by hand to a replica that was behind (3)
  --broadcasts N  kills of service and store while three broadcasts are released (100)
  --cluster    a Redis Cluster, and nothing else of this:
  --failovers N  its primaries lost while its replicas are behind (32)
  --lags M,M   how far, ms: the first primaries once they are replicas, the first replica of each, the second one (150)
  --how W,W    in these ways, by turns: killed, isolated, silent, planned (all)
  --timeout N  its cluster-node-timeout, ms (2000)
  --replicas N its replicas killed (3)
  --blackouts N  a primary with its replicas dead for a while (1)
  --moves N    its shards moved to other primaries under load (20)
  --tears N    the same, and source, target or order are lost on the way (30)
  --from DIR   a checkout of an earlier version, built: a fleet of it is restarted as this one, process by process
  --upgrades N how often (3, where --from is given)
  --ways N     rounds of npm start and npm run cluster on one directory (20)
  --cuts-of-power N  the machine loses its power, and its disk what was not synced; nothing else of this
  --joint-cuts N  all Redis of a cluster and all processes lose their power at once, a replica is back first; nothing else
  --damage     every file of an installation is damaged in each way; nothing else of this
  --mistakes N what operators do to a running store (24)
  --segments N kills of service and Redis while the log is sealed, erased and packed; nothing else of this
  --clients N  clients that send all the while (16)
  --seed N     repeats the choices of a run
`
const number = { type: 'string' } as const
const { values } = parseArgs({
  options: {
    kills: number,
    falls: number,
    stops: number,
    rolls: number,
    cuts: number,
    storms: number,
    freezes: number,
    partitions: number,
    ills: number,
    losses: number,
    failovers: number,
    moves: number,
    tears: number,
    replicas: number,
    blackouts: number,
    how: { type: 'string' },
    lags: { type: 'string' },
    timeout: number,
    cluster: { type: 'boolean' },
    broadcasts: number,
    from: { type: 'string' },
    upgrades: number,
    ways: number,
    mistakes: number,
    'cuts-of-power': number,
    'joint-cuts': number,
    damage: { type: 'boolean' },
    segments: number,
    clients: number,
    seed: number,
    help: { type: 'boolean' },
  },
})

/** Recipients of each broadcast for a kill: enough to be released while processes start. */
const BROADCAST_RECIPIENTS = 150

async function main(): Promise<number> {
  if (values.help === true) {
    console.log(HELP)
    return 0
  }
  const of = (text: string | undefined, fallback: number): number => (text === undefined ? fallback : Number(text))
  if (values['cuts-of-power'] !== undefined) return await powerHolds(of(values['cuts-of-power'], 0), of(values.seed, 1))
  if (values['joint-cuts'] !== undefined) return await jointCutsHold(of(values['joint-cuts'], 0), of(values.seed, 1))
  if (values.segments !== undefined) return await segmentsHold(of(values.segments, 200))
  if (values.damage === true) return await damageIsNoticed(of(values.seed, 1))
  if (values.cluster === true) return (await clusterFound(of)) ? 0 : 1
  const options = {
    seed: of(values.seed, Date.now() % 1_000_000),
    kills: of(values.kills, 100),
    falls: of(values.falls, 5),
    stops: of(values.stops, 20),
    stopMs: 15_000,
    rolls: of(values.rolls, 5),
    cuts: of(values.cuts, 20),
    storms: of(values.storms, 20),
    clients: of(values.clients, 16),
    isStrict: true,
    recoveryMsMax: 12_000,
    say: (line: string) => console.log(line),
  }
  console.log(`seed ${options.seed}`)
  const report = await runChaos(options)
  console.log(describeChaos(report))
  const failures = [
    ...failuresOf(report, options),
    ...(await mistakesFound(options, of)),
    ...(await halfDeadFound(of(values.ills, 2), options.say)),
    ...(await lossesFound(of(values.losses, 3), options.say)),
    ...(await broadcastsFound(of(values.broadcasts, 100), options)),
    ...(await upgradesFound(of(values.upgrades, 3), options)),
  ]
  for (const failure of failures) console.error(failure)
  const freezes = of(values.freezes, 30)
  const partitions = of(values.partitions, 30)
  const isAway = freezes + partitions === 0 || (await awayHolds(options.seed, { freezes, partitions }))
  return failures.length === 0 && isAway ? 0 : 1
}

/** The machine loses its power. Returns the exit code. */
async function powerHolds(cuts: number, seed: number): Promise<number> {
  if (POWER_DISK_SKIP !== false) {
    console.error(POWER_DISK_SKIP)
    return 1
  }
  const say = (line: string) => console.log(line)
  const report = await runPowerCuts({ cuts, random: makeRandom(seed), say })
  const control = await lostByMemory(say)
  say(`power ${JSON.stringify(report)}`)
  const failures = [...failuresOfPowerCuts(report), ...(control === 0 ? ['the control lost nothing'] : [])]
  for (const failure of failures) console.error(failure)
  return failures.length === 0 ? 0 : 1
}

/** The machines of a cluster lose their power together. Returns the exit code. */
async function jointCutsHold(cuts: number, seed: number): Promise<number> {
  if (POWER_DISK_SKIP !== false) {
    console.error(POWER_DISK_SKIP)
    return 1
  }
  const report = await runJointCuts({ cuts, random: makeRandom(seed), say: (line) => console.log(line) })
  console.log(`joint ${JSON.stringify(report)}`)
  const failures = failuresOfJointCuts(report)
  for (const failure of failures) console.error(failure)
  return failures.length === 0 ? 0 : 1
}

/** Segments and packs outlive kills. Returns the exit code. */
async function segmentsHold(kills: number): Promise<number> {
  const failures = await runSegmentKills(kills, (line) => console.log(line))
  for (const failure of failures) console.error(failure)
  return failures.length === 0 ? 0 : 1
}

/** Files of an installation are damaged. Returns the exit code. */
async function damageIsNoticed(seed: number): Promise<number> {
  console.log(`seed ${seed}`)
  const rows = await runDamage({ random: makeRandom(seed), say: (line) => console.log(line) })
  const failures = failuresOfDamage(rows)
  for (const failure of failures) console.error(failure)
  return failures.length === 0 ? 0 : 1
}

/** Mistakes of operators. Returns what was lost, or not refused. */
async function mistakesFound(
  { seed, say }: { seed: number; say: (line: string) => void },
  of: (text: string | undefined, fallback: number) => number,
): Promise<string[]> {
  const [ways, mistakes] = [of(values.ways, 20), of(values.mistakes, 24)]
  if (ways + mistakes === 0) return []
  const report = await runMistakes({ ways, mistakes, random: makeRandom(seed), say })
  console.log(`mistakes ${JSON.stringify(report)}`)
  return failuresOfMistakes(report)
}

/** Processes with one impaired connection. Returns what took too long, or was lost. */
async function halfDeadFound(rounds: number, say: (line: string) => void): Promise<string[]> {
  return rounds === 0
    ? []
    : failuresOfHalfDead(await runHalfDead(rounds, say), { servedMsMax: 20_000, readyMsMax: 5_000 })
}

/** Manual failovers. Returns losses that were not reported exactly once. */
async function lossesFound(times: number, say: (line: string) => void): Promise<string[]> {
  const failures: string[] = []
  for (let n = 0; n < times; n += 1) failures.push(...failuresOfLoss(await runLoss(say)))
  return failures
}

/** Broadcasts whose processes are killed. Out: recipients that were lost or doubled, sums that do not hold. */
async function broadcastsFound(
  kills: number,
  { seed, say }: { seed: number; say: (line: string) => void },
): Promise<string[]> {
  if (kills === 0) return []
  const report = await runBroadcasts({ kills, recipients: kills * BROADCAST_RECIPIENTS, seed, say })
  say(`broadcasts ${JSON.stringify(report)}`)
  return failuresOfBroadcasts(report)
}

/** A Redis Cluster whose primaries are killed and whose shards are moved. Out: whether every promise held. */
async function clusterFound(of: (text: string | undefined, fallback: number) => number): Promise<boolean> {
  const report = await runFailovers({
    rounds: of(values.failovers, 32),
    ways: WAYS.filter((way) => values.how === undefined || values.how.split(',').includes(way)),
    moves: of(values.moves, 20),
    tears: of(values.tears, 30),
    replicaKills: of(values.replicas, 3),
    blackouts: of(values.blackouts, 1),
    durability: 'replica',
    lagsMs: (values.lags ?? '150').split(',').map(Number),
    nodeTimeoutMs: of(values.timeout, 2_000),
    say: (line) => console.log(line),
  })
  console.log(`cluster ${JSON.stringify(report)}`)
  const failures = failuresOfFailovers(report, { writesMsMax: 6_000, stoodMsMax: 5_000 })
  for (const failure of failures) console.error(failure)
  return failures.length === 0
}

/** Rolls from an earlier version. Returns what was lost, doubled or refused. */
async function upgradesFound(
  times: number,
  { seed, say }: { seed: number; say: (line: string) => void },
): Promise<string[]> {
  const failures: string[] = []
  for (let n = 0; values.from !== undefined && n < times; n += 1) {
    const report = await runUpgrade({ checkout: resolve(values.from), seed: seed + n }, say)
    const { compared, live } = report
    say(`upgrade ${n + 1}: messages ${compared.messages + live.messages}, refused ${JSON.stringify(report.refusals)}`)
    failures.push(...failuresOfUpgrade(report))
  }
  return failures
}

/** Owners that are away while receivers are slow. Out: whether every promise held. */
async function awayHolds(seed: number, rounds: { freezes: number; partitions: number }): Promise<boolean> {
  const say = (line: string) => console.log(line)
  const report = await runPartitions({ seed, ...rounds, freezeMs: [10_000, 40_000], partitionMs: [5_000, 45_000], say })
  console.log(describePartitions(report))
  const { lost, waiting, doubled, falselyRefused } = report
  const isKept = lost + waiting + doubled.length + falselyRefused === 0
  if (!isKept) console.error(`Lost, undelivered, taken twice or falsely refused: ${doubled.join(' ')}`)
  return isKept
}

process.exit(await main())
