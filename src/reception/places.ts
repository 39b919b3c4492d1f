/**
 * places - the open sessions of one listener by client, and which one is displaced when a new client needs a place
 *
 * A client is an IPv4 address or an IPv6 network. All places may be one client's while no other client asks. Once a
 * listener is crowded, a newcomer from another client takes the place of the oldest idle session of the client that has
 * the most. A session that is held (logged in, or with a mail in hand) is never displaced.
 *
 * Spec submission.connections, mx.places
 */

/** The result for a new session. `displaced` is the session whose place it has now. */
export type PlaceEntry<Session> =
  | { readonly isPlaced: true; readonly displaced: Session | null }
  | { readonly isPlaced: false; readonly displaced: null }

export interface PlaceBounds {
  /** Sessions at once. */
  readonly max: number
  /** Number of sessions from which the listener counts as crowded. */
  readonly crowdedFrom: number
}

export class Places<Session> {
  readonly #bounds: PlaceBounds
  readonly #clients = new Map<Session, string>()
  /** Sessions that may be displaced, by client, the oldest first; no set is empty. */
  readonly #idle = new Map<string, Set<Session>>()

  constructor(bounds: PlaceBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#clients.size
  }

  /** A session of a client begins. */
  enter(session: Session, client: string): PlaceEntry<Session> {
    const { max, crowdedFrom } = this.#bounds
    const displaced = this.size < crowdedFrom ? null : this.#oldestOfMost(client)
    if (displaced !== null) this.leave(displaced)
    if (this.size >= max) return { isPlaced: false, displaced: null }
    this.#clients.set(session, client)
    this.#addIdle(session, client)
    return { isPlaced: true, displaced }
  }

  /** From now on the session cannot be displaced. */
  hold(session: Session): void {
    const client = this.#clients.get(session)
    if (client !== undefined) this.#removeIdle(session, client)
  }

  /** The session may be displaced again, as the youngest of its client. */
  release(session: Session): void {
    const client = this.#clients.get(session)
    if (client !== undefined) this.#addIdle(session, client)
  }

  /** A session has ended; one that has no place is ignored. */
  leave(session: Session): void {
    const client = this.#clients.get(session)
    if (client === undefined) return
    this.#clients.delete(session)
    this.#removeIdle(session, client)
  }

  /** While there is room a client keeps its only session: it may be about to log in. */
  #oldestOfMost(newcomer: string): Session | null {
    let most: Set<Session> | null = null
    let client = newcomer
    for (const [one, sessions] of this.#idle)
      if (most === null || sessions.size > most.size) {
        most = sessions
        client = one
      }
    if (most === null || client === newcomer) return null
    const isNeeded = this.size >= this.#bounds.max || most.size > 1
    return isNeeded ? ([...most][0] as Session) : null
  }

  #addIdle(session: Session, client: string): void {
    const own = this.#idle.get(client)
    if (own === undefined) this.#idle.set(client, new Set([session]))
    else own.add(session)
  }

  #removeIdle(session: Session, client: string): void {
    const own = this.#idle.get(client)
    own?.delete(session)
    if (own?.size === 0) this.#idle.delete(client)
  }
}
