/** valved-fleet - a fleet whose processes reach the store through valves, each through its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Fleet, startFleet } from '../support/service/fleet.ts'
import { openValve, type Valve } from './valve.ts'

export interface ValvedFleet {
  readonly fleet: Fleet
  /** By the name of the process, `<role>-<place>`. */
  readonly valves: ReadonlyMap<string, Valve>
  /** Connections that are begun from now on lead to another store. */
  leadTo(storePath: string): void
}

export interface ValvedOptions {
  readonly roles: readonly string[]
  /** Which processes have a valve; all by default. */
  readonly hasValve?: (name: string) => boolean
  readonly settings?: Readonly<Record<string, string>>
  /** Settings of the store by name. */
  readonly store?: Readonly<Record<string, string>>
}

/** Starts the fleet for as long as `run` takes, and ends all of it, whatever its result. */
export async function withValvedFleet<Result>(
  { roles, hasValve = () => true, settings = {}, store = {} }: ValvedOptions,
  run: (valved: ValvedFleet) => Promise<Result>,
): Promise<Result> {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-valves-'))
  const valves = new Map<string, Valve>()
  let storePath = ''
  try {
    for (const [place, role] of roles.entries()) {
      const name = `${role}-${place}`
      if (hasValve(name)) valves.set(name, await openValve(join(dir, name), () => storePath))
    }
    const fleet = await startFleet(roles, {
      settings,
      store: { settings: store },
      address: (name, redis) => {
        storePath = redis.socketPath
        return valves.has(name) ? join(dir, name) : undefined
      },
    })
    try {
      return await run({
        fleet,
        valves,
        leadTo(path) {
          storePath = path
        },
      })
    } finally {
      await fleet.end()
    }
  } finally {
    for (const valve of valves.values()) valve.close()
    rmSync(dir, { recursive: true, force: true })
  }
}
