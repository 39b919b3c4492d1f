/**
 * network - the connection between workers and the store. Every request waits until the scheduler delivers it, every
 * answer until the scheduler hands it over, and both can be lost.
 */
import type { Fact, FactValue } from '../../cluster/behaviour.ts'
import type {
  Acquired,
  Beat,
  Commit,
  Enqueue,
  Enqueued,
  InboxEntry,
  Meta,
  Replies,
  Store,
  Verdict,
  WorkerRecord,
} from '../../cluster/store.ts'

export type Method =
  | 'read'
  | 'commit'
  | 'acquire'
  | 'release'
  | 'fenced'
  | 'metas'
  | 'heartbeat'
  | 'retire'
  | 'look'
  | 'handIn'
  | 'entries'
  | 'waiting'
  | 'enqueue'
  | 'replies'
  | 'time'
  | 'wait'
  | 'nodes'

/** The connections of a process, as `cluster/redis/store.ts` and `cluster/slots/` have them. */
export type Connection = 'commit' | 'read' | 'enqueue' | 'gate' | 'views'

export const CONNECTION_OF: Readonly<Record<Method, Connection>> = {
  read: 'read',
  commit: 'commit',
  acquire: 'commit',
  release: 'commit',
  fenced: 'read',
  metas: 'read',
  heartbeat: 'commit',
  retire: 'commit',
  look: 'read',
  handIn: 'enqueue',
  entries: 'read',
  waiting: 'read',
  enqueue: 'enqueue',
  replies: 'read',
  time: 'commit',
  wait: 'gate',
  nodes: 'views',
}

/** A primary, and the store that it holds. */
interface CommitNode {
  readonly base: Pick<Store, 'metas'> & { readonly nowMs: number }
}

/** A request under way. */
export interface Request {
  readonly n: number
  /** Number of the process that sent it. */
  readonly from: number
  readonly method: Method
  readonly shard: number
  readonly commit: Commit | null
  /** The primary, out of several, that a commit goes to. */
  readonly node?: CommitNode
  /** Virtual time. */
  readonly sentAtMs: number
  run(): Promise<unknown>
  /** The result that the sender gets if no answer arrives. */
  readonly lost: unknown
  readonly resolve: (answer: unknown) => void
}

/** An answer under way; held until so many commits of its shard were applied, or until a virtual time. */
export interface Answer {
  readonly request: Request
  readonly value: unknown
  readonly heldUntilCommits: number
  readonly heldUntilMs: number
}

/** A published message or a reply on its way to the subscribers. */
export interface Said {
  /** The number of the process that receives it. */
  readonly to: number
  readonly what: string
  call(): void
}

export class Network {
  requests: Request[] = []
  answers: Answer[] = []
  said: Said[] = []
  /** Outcomes that a process has to hand in until the store acknowledges them: command id -> process. */
  readonly handingIn = new Map<string, number>()
  private sent = 0
  private readonly nowMs: () => number

  /** `nowMs` returns virtual time. */
  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  /** Sends one request. */
  ask<Value>(
    request: Pick<Request, 'from' | 'method'> & Partial<Pick<Request, 'shard' | 'commit' | 'node'>>,
    lost: Value,
    run: () => Promise<Value>,
  ): Promise<Value> {
    return this.send({ shard: -1, commit: null, ...request, lost }, run)
  }

  private send<Value>(
    request: Pick<Request, 'from' | 'method' | 'shard' | 'commit' | 'node'> & { lost: Value },
    run: () => Promise<Value>,
  ): Promise<Value> {
    return new Promise((resolve) => {
      this.sent += 1
      const heard = (answer: unknown): void => resolve(answer as Value)
      this.requests.push({ ...request, n: this.sent, sentAtMs: this.nowMs(), run, resolve: heard })
    })
  }

  /** A store as one process sees it. */
  link(from: number, store: Store): Store {
    const send = <Value>(
      method: Method,
      { shard, lost, commit = null }: { shard: number; lost: Value; commit?: Commit | null },
      run: () => Promise<Value>,
    ): Promise<Value> => this.send({ from, method, shard, lost, commit }, run)
    return {
      // No process may rely on a signal. None is delayed or lost here.
      signal: (signals) => store.signal(signals),
      read: (shard: number, facts: readonly Fact[]) =>
        send<readonly FactValue[] | null>('read', { shard, lost: null }, () => store.read(shard, facts)),
      commit: (commit: Commit) =>
        send<Verdict>('commit', { shard: commit.shard, lost: { kind: 'lost' }, commit }, () => store.commit(commit)),
      acquire: (request) =>
        send<Acquired>('acquire', { shard: request.shard, lost: { kind: 'failed' } }, () => store.acquire(request)),
      release: (request) => send('release', { shard: request.shard, lost: false }, () => store.release(request)),
      fenced: (request) =>
        send<{ seq: number; last: string } | null>('fenced', { shard: request.shard, lost: null }, () =>
          store.fenced(request),
        ),
      metas: (shards: readonly number[]) =>
        send<readonly (Meta | null | undefined)[] | null>('metas', { shard: -1, lost: null }, () =>
          store.metas(shards),
        ),
      heartbeat: (request: { worker: string; record: WorkerRecord }) =>
        send<Beat>('heartbeat', { shard: -1, lost: { kind: 'failed' } }, () => store.heartbeat(request)),
      retire: (worker: string, seen?: string) =>
        send<void>('retire', { shard: -1, lost: undefined }, () => store.retire(worker, seen)),
      enqueue: (request: Enqueue) =>
        send<readonly Enqueued[]>('enqueue', { shard: -1, lost: request.parcels.map(() => 'lost') }, () =>
          store.enqueue(request),
        ),
      look: (clients) =>
        send<Awaited<ReturnType<Store['look']>>>('look', { shard: -1, lost: null }, () => store.look(clients)),
      handIn: async (request) => {
        this.handingIn.set(request.cmdId, from)
        const isKept = await send('handIn', { shard: request.shard, lost: false }, () => store.handIn(request))
        if (isKept) this.handingIn.delete(request.cmdId)
        return isKept
      },
      entries: (request) =>
        send<readonly InboxEntry[] | null>('entries', { shard: request.shard, lost: null }, () =>
          store.entries(request),
        ),
      waiting: (cursors) =>
        send<readonly number[] | null>('waiting', { shard: -1, lost: null }, () => store.waiting(cursors)),
      listen: (worker, ears) =>
        store.listen(worker, {
          bells: (bells) => this.say({ to: from, what: `bells ${bells.length}`, call: () => ears.bells(bells) }),
          replies: (text) => this.say({ to: from, what: 'replies', call: () => ears.replies(text) }),
          joined: () => this.say({ to: from, what: 'joined', call: () => ears.joined() }),
          released: (shard) => this.say({ to: from, what: `released s${shard}`, call: () => ears.released(shard) }),
        }),
      replies: (parcels) =>
        send<readonly (Replies | null)[]>('replies', { shard: -1, lost: [] }, () => store.replies(parcels)),
    }
  }

  /** Requests of a process without an answer, wherever they are. */
  openOf(from: number): Request[] {
    const all = [...this.requests, ...this.answers.map(({ request }) => request)]
    return all.filter((request) => request.from === from)
  }

  /** Whether a request has to wait for an earlier one of its connection: nothing follows the removal of a record. */
  isBehind({ from, method, n }: Request): boolean {
    if (method !== 'retire') return false
    return this.requests.some((other) => other.method === 'heartbeat' && other.from === from && other.n < n)
  }

  /** A message is published or sent. */
  say(said: Said): void {
    this.said.push(said)
  }

  takeRequest(at: number): Request {
    return this.requests.splice(at, 1)[0]!
  }

  /** Hands an answer over. */
  complete(answer: Answer): void {
    this.answers.splice(this.answers.indexOf(answer), 1)
    answer.request.resolve(answer.value)
  }
}
