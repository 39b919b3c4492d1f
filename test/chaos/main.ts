/** main - `npm run chaos`: faults against several processes under load, with a real budget, and a report that can fail. */
import { parseArgs } from 'node:util'
import { describeChaos, failuresOf } from './report.ts'
import { runChaos } from './run.ts'

const HELP = `Usage: npm run chaos [-- options]

  --kills N    processes and stores killed one at a time (100)
  --falls N    kills of all processes together (5)
  --stops N    owners frozen for 15 s (20)
  --rolls N    restarts of every process, one by one (5)
  --cuts N     rounds of ten connections to the store cut at any byte (20)
  --storms N   64 requests with one Idempotency-Key, killed in the middle (20)
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
    clients: number,
    seed: number,
    help: { type: 'boolean' },
  },
})

async function main(): Promise<number> {
  if (values.help === true) {
    console.log(HELP)
    return 0
  }
  const of = (text: string | undefined, fallback: number): number => (text === undefined ? fallback : Number(text))
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
  const failures = failuresOf(report, options)
  for (const failure of failures) console.error(failure)
  return failures.length === 0 ? 0 : 1
}

process.exit(await main())
