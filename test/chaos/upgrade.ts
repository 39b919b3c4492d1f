/**
 * upgrade - a fleet of an earlier version, restarted process by process as this one, under load: for a while both run
 * side by side, and nothing is lost, doubled or refused for it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seedAccounts } from '../../bench/contestants/seed.ts'
import { startLoad } from '../support/clients/ledger.ts'
import { FLEET_SECRET, startFleet, type Vessel } from '../support/service/fleet.ts'
import { makeRandom } from '../support/store/random-ops.ts'
import { type Compared, compare } from './compare.ts'
import { openLedgerFile, readLedgerFile } from './ledger-file.ts'
import { LiveLoad, openReceivers, type Taken } from './live-load.ts'

export interface UpgradeReport {
  /** Test accounts, by the ledger. */
  readonly compared: Compared
  /** Mail to slow receivers. */
  readonly live: Taken
  /** Answers other than 200, by status; 0 for a connection that ended without one. */
  readonly refusals: Readonly<Record<number, number>>
  readonly falselyRefused: number
  /** Processes that did not stop by themselves, or ended. */
  readonly ended: readonly string[]
}

const ROLES = ['actors', 'actors', 'http', 'http'] as const
const ACCOUNTS = 32
const CLIENTS = 8
const EVERY_MS = 60
/** While both versions run. */
const MESSAGES_BETWEEN = 300
const LIVE_BETWEEN = 30
/** As in any rolling restart. */
const REFUSED_SHARE_MAX = 0.001

/** Restarts every process of a fleet of `checkout` (built) as this version, in an order drawn from the seed. */
export async function runUpgrade(
  { checkout, seed }: { checkout: string; seed: number },
  say: (line: string) => void,
): Promise<UpgradeReport> {
  const random = makeRandom(seed)
  const receivers = await openReceivers(random)
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-upgrade-'))
  try {
    const fleet = await startFleet(ROLES, { settings: receivers.settings, checkout })
    try {
      const file = await openLedgerFile(join(dir, 'ledger'))
      const { socketPath } = fleet.redis
      const seeding = { socketPath, accounts: ACCOUNTS, over: ACCOUNTS, mode: 'test', secretKey: FLEET_SECRET } as const
      const load = startLoad({
        port: fleet.with('http').map(({ httpPort }) => httpPort),
        token: await seedAccounts(seeding),
        clients: CLIENTS,
        everyMs: EVERY_MS,
        recipient: (n) => `person${n % 500}@example.com`,
        accepted: (message) => file.note(message),
      })
      const live = await LiveLoad.begin(fleet, receivers)
      const ended: string[] = []
      await load.passes(MESSAGES_BETWEEN)
      for (const vessel of shuffled(fleet.vessels, random)) {
        await vessel.host.kill('SIGTERM')
        const code = await vessel.host.exited
        if (code !== 0) ended.push(`${vessel.name} of the earlier version ended with ${code}`)
        await fleet.start(vessel)
        say(`${vessel.name} is of this version`)
        await Promise.all([load.passes(MESSAGES_BETWEEN), live.passes(LIVE_BETWEEN)])
      }
      for (const { name, host } of fleet.vessels) if (!host.isRunning()) ended.push(`${name} ended: ${host.said()}`)
      const { statuses, cuts, falselyRefused } = await load.end()
      const taken = await live.settle()
      await file.close()
      const port = fleet.with('http')[0]?.httpPort ?? 0
      const compared = await compare(socketPath, { ledger: await readLedgerFile(join(dir, 'ledger')), port })
      const answers = [...statuses].filter(([status]) => status !== 200 && status !== 0)
      const refusals = Object.fromEntries([...answers, [0, cuts.filter(({ connected }) => connected).length]])
      // The live server's messages are in the logs, and not in the ledger.
      const doubled = compared.doubled - taken.messages
      const mine = { ...compared, doubled }
      return { compared: mine, live: taken, refusals, falselyRefused: falselyRefused.length, ended }
    } finally {
      await fleet.end()
    }
  } finally {
    await receivers.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The broken promises. */
export function failuresOfUpgrade({ compared, live, refusals, falselyRefused, ended }: UpgradeReport): string[] {
  const { lost, doubled, miscounted, unclear, torn, unshown, fencedWrites } = compared
  const counts = {
    lost: lost + live.lost,
    'still waiting': live.waiting,
    doubled: doubled + live.doubled.length,
    miscounted: miscounted.length,
    'without exactly one outcome': unclear,
    torn,
    'shown otherwise by the API': unshown.length,
    'written by a fenced owner': fencedWrites,
    'falsely refused': falselyRefused + live.falselyRefused,
    'without an answer': refusals[0] ?? 0,
  }
  const refused = Object.entries(refusals).reduce((sum, [status, n]) => sum + (status === '0' ? 0 : n), live.refused)
  const sent = compared.messages + live.messages
  const isMuch = refused > REFUSED_SHARE_MAX * sent
  const tooMany = isMuch ? [`refused in an upgrade: ${refused} of ${sent}`] : []
  return [
    ...ended,
    ...tooMany,
    ...Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${what}: ${count}`] : [])),
  ]
}

function shuffled(vessels: readonly Vessel[], random: () => number): Vessel[] {
  return vessels
    .map((vessel) => ({ vessel, place: random() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ vessel }) => vessel)
}
