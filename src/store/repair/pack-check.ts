/**
 * pack-check - opens the bodies of messages in their packs, of each pack those of some hundred heads together
 *
 * Spec operator.health
 */

import { BrokenObject } from '../../content/framing.ts'
import { openJoined } from '../../content/joined.ts'
import type { ObjectDamage } from '../../content/sealed/whole.ts'
import { contentExpiresAtMs } from '../../state/age.ts'
import { type PackedPlace, packName } from '../../state/message/packed.ts'
import { openMailKey } from '../../state/ring/sealing.ts'
import type { OpenObjects } from './open-objects.ts'

/** Bodies that are collected before their packs are read. */
const BODIES_MAX = 2_000

/** A body as its head names it. */
export interface NamedBody {
  /** Sealed. */
  readonly key: string
  readonly packed: PackedPlace
  /** When its message was accepted. */
  readonly ms: number
  readonly test: boolean
}

/** Damage of a pack, and the messages whose bodies it has. */
export interface PackDamage {
  readonly damage: ObjectDamage
  readonly messages: number
}

export class PackCheck {
  /** Packs that heads name. */
  readonly names = new Set<string>()
  readonly damaged = new Map<string, PackDamage>()
  bodies = 0
  readonly #open: Pick<OpenObjects, 'contents' | 'ring' | 'nowMs'>
  #waiting = new Map<string, NamedBody[]>()
  #count = 0

  constructor(open: Pick<OpenObjects, 'contents' | 'ring' | 'nowMs'>) {
    this.#open = open
  }

  /** Adds a body. Content that has expired may be gone. */
  async add(shard: number, body: NamedBody): Promise<void> {
    const name = packName(shard, body.packed.object)
    this.names.add(name)
    if (contentExpiresAtMs(body.ms, body.test) <= this.#open.nowMs) return
    const known = this.#waiting.get(name)
    if (known === undefined) this.#waiting.set(name, [body])
    else known.push(body)
    this.#count += 1
    if (this.#count >= BODIES_MAX) await this.flush()
  }

  /** Opens the bodies that were added. */
  async flush(): Promise<void> {
    for (const [name, bodies] of this.#waiting) await this.#pack(name, bodies)
    this.#waiting = new Map()
    this.#count = 0
  }

  async #pack(name: string, bodies: readonly NamedBody[]): Promise<void> {
    const from = Math.min(...bodies.map(({ packed }) => packed.from))
    const end = Math.max(...bodies.map(({ packed }) => packed.from + packed.length))
    const read = await this.#open.contents.readSealed(name, { from, length: end - from })
    if (typeof read === 'string') return this.#note(name, read === 'gone' ? 'missing' : 'away', bodies.length)
    let broken = 0
    for (const { key, packed } of bodies) {
      const mailKey = openMailKey(this.#open.ring, key)
      const bytes = read.subarray(packed.from - from, packed.from - from + packed.length)
      if (mailKey === null || !(await isWhole(bytes, mailKey))) broken += 1
      else this.bodies += 1
    }
    if (broken > 0) this.#note(name, 'broken', broken)
  }

  #note(name: string, damage: ObjectDamage, messages: number): void {
    this.damaged.set(name, { damage, messages: (this.damaged.get(name)?.messages ?? 0) + messages })
  }
}

async function isWhole(bytes: Buffer, mailKey: Buffer): Promise<boolean> {
  try {
    await openJoined(bytes, { mailKey, kind: 'body' })
    return true
  } catch (error) {
    if (error instanceof BrokenObject) return false
    throw error
  }
}
