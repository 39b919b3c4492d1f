/**
 * relays - the relays of the sources of a thread, each with its own connections
 *
 * A relay whose settings have changed is replaced; its connections end after their message.
 */

import { Relay, type RelayOptions } from './relay.ts'
import type { RelayWay } from './thread-job.ts'

/** Relays with connections; the one that was used longest ago goes. */
const RELAYS_MAX = 64

export class Relays {
  private readonly shared: Omit<RelayOptions, 'target' | 'connectionsMax'>
  private readonly relays = new Map<string, { readonly settings: string; readonly relay: Relay }>()

  constructor(shared: Omit<RelayOptions, 'target' | 'connectionsMax'>) {
    this.shared = shared
  }

  /** Connections that are open. */
  get open(): number {
    return [...this.relays.values()].reduce((sum, { relay }) => sum + relay.open, 0)
  }

  /** The relay of a source. */
  of({ source, target, connections, ehlo }: RelayWay): Relay {
    const settings = JSON.stringify([target, connections, ehlo])
    const known = this.relays.get(source)
    this.relays.delete(source)
    if (known?.settings === settings) {
      this.relays.set(source, known)
      return known.relay
    }
    known?.relay.close()
    if (this.relays.size >= RELAYS_MAX) {
      const [oldest, { relay }] = this.relays.entries().next().value as [string, { relay: Relay }]
      this.relays.delete(oldest)
      relay.close()
    }
    const ehloName = ehlo ?? this.shared.ehloName
    const relay = new Relay({ ...this.shared, target, connectionsMax: connections, ehloName })
    this.relays.set(source, { settings, relay })
    return relay
  }
}
