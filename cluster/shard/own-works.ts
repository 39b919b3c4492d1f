/** own-works - the runtime's own work in a shard: claims, outcomes, timers, frees, the index of lanes. */
import type { CommandType } from '../behaviour.ts'
import { newCmdId } from '../cmd-id.ts'
import type { ItemContext } from '../items/claim.ts'
import { claimType, freeType, indexType, outcomeType, timerType } from '../items/item-turns.ts'
import { laneFamily } from '../items/lane-runner.ts'
import { internalWork, type Work, type WorkSource } from '../work.ts'
import type { ShardWorld } from './world.ts'

/** The lane and item of a work, and its content. */
export interface OwnWork {
  readonly lane: string
  readonly item: string
  readonly body: unknown
}

export class OwnWorks {
  private readonly world: ShardWorld
  private readonly types: ReadonlyMap<string, CommandType>

  constructor(world: ShardWorld, items: ItemContext) {
    this.world = world
    this.types = itemTypes(world, items)
  }

  /** A work of a source: `claim`, `outcome`, `timer`, `free`, `index`; null if the lane or timer is unknown. */
  make(source: WorkSource, { lane, item, body }: OwnWork): Work | null {
    const type = this.types.get(typeName(source, lane, item))
    if (type === undefined) return null
    const { clock, random } = this.world
    const command = { name: type.name, cmdId: newCmdId(clock.nowMs(), random), body }
    return internalWork(source, type, { command, lane, item, cameAtMs: clock.monotonicMs() })
  }

  /** The handler of the outcomes of a lane. */
  outcomeType(lane: string): CommandType | undefined {
    return this.types.get(typeName('outcome', lane, ''))
  }
}

function itemTypes(world: ShardWorld, items: ItemContext): ReadonlyMap<string, CommandType> {
  const types = new Map<string, CommandType>()
  const add = (name: string, type: CommandType<never, unknown>): void => {
    types.set(name, type as unknown as CommandType)
  }
  for (const lane of world.lanes) {
    add(`claim ${lane.prefix}`, claimType(lane, items))
    add(`outcome ${lane.prefix}`, outcomeType(lane, items))
  }
  for (const [name, type] of Object.entries(world.timers)) add(`timer ${name}`, timerType(type, items))
  add('free', freeType(items))
  add('index', indexType())
  return types
}

function typeName(source: WorkSource, lane: string, item: string): string {
  if (source === 'timer') return `timer ${item.slice(0, item.indexOf(':'))}`
  if (source === 'claim' || source === 'outcome') return `${source} ${laneFamily(lane)}`
  return source
}
