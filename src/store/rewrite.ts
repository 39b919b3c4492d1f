/**
 * rewrite - makes the embedded Redis rewrite its append-only file, and records the result for every process
 *
 * Many processes check, but only one starts a rewrite: it first takes a turn, which expires by itself. Once Redis has
 * begun, the rewrite is recorded, so that later checks know whether it succeeded, even if the process that started it
 * is gone.
 *
 * Keys: `{cl}:rewrite`, hash of the last rewrite of that kind: `ms`, when it was begun; `run`, run id of the Redis that
 * began it; `clean`, when the last one was begun that ended well; `due`, from when on the next one is wanted.
 * `{cl}:rewrite-turn`: no process may start a rewrite while it exists.
 *
 * Spec erasure.files
 */

import type { Redis } from 'ioredis'

const REWRITE_KEY = '{cl}:rewrite'
const TURN_KEY = '{cl}:rewrite-turn'

/** The state of Redis' rewrite of its append-only file. */
export interface RewriteState {
  /** Run id of the Redis that reports it. */
  readonly runId: string
  /** One is under way, or is to begin. */
  readonly isRunning: boolean
  /** The last one that has ended, ended well. */
  readonly isOk: boolean
}

/** Shared state of rewrites that were started in a turn. */
export interface KnownRewrites {
  /** When the last one was begun, ms; 0 if none. */
  readonly begunMs: number
  /** Run id of the Redis that began it. */
  readonly runId: string
  /** When the last one was begun that ended well, ms; 0: none did. */
  readonly cleanMs: number
  /** From when on the next one is wanted, ms; 0 if not since the last one was begun. */
  readonly dueMs: number
}

/** The file of the embedded Redis. Methods reject if the store did not answer. */
export interface Rewrites {
  /** Asks for a new file; answers why Redis refused, as it does while it writes one, or null. */
  ask(): Promise<string | null>
  /** How the last rewrite fares; null: Redis did not answer. */
  state(): Promise<RewriteState | null>
  known(): Promise<KnownRewrites>
  /** Takes the turn unless another process took it in the last `apartMs`. Returns whether it did. */
  takeTurn(apartMs: number): Promise<boolean>
  /** Gives a turn back in which nothing was begun. */
  giveTurnBack(): Promise<void>
  /** A rewrite was begun: none is due. */
  noteBegun(begun: Pick<KnownRewrites, 'begunMs' | 'runId'>): Promise<void>
  noteClean(cleanMs: number): Promise<void>
  noteDue(dueMs: number): Promise<void>
}

/** Over the client of the moment. */
export function makeRewrites(client: () => Redis): Rewrites {
  return {
    ask: () =>
      client()
        .bgrewriteaof()
        .then(
          () => null,
          (error: Error) => error.message,
        ),
    state: () => readState(client()),
    async known() {
      const { ms, run, clean, due } = await client().hgetall(REWRITE_KEY)
      return { begunMs: Number(ms ?? 0), runId: run ?? '', cleanMs: Number(clean ?? 0), dueMs: Number(due ?? 0) }
    },
    takeTurn: async (apartMs) => (await client().set(TURN_KEY, '', 'PX', apartMs, 'NX')) === 'OK',
    async giveTurnBack() {
      await client().unlink(TURN_KEY)
    },
    async noteBegun({ begunMs, runId }) {
      await client().hset(REWRITE_KEY, { ms: begunMs, run: runId, due: 0 })
    },
    async noteClean(cleanMs) {
      await client().hset(REWRITE_KEY, { clean: cleanMs })
    },
    async noteDue(dueMs) {
      await client().hset(REWRITE_KEY, { due: dueMs })
    },
  }
}

async function readState(redis: Redis): Promise<RewriteState | null> {
  const info = await redis.info().catch(() => null)
  const runId = /^run_id:(\w+)/m.exec(info ?? '')?.[1]
  if (info === null || runId === undefined) return null
  return {
    runId,
    isRunning: /^aof_rewrite_(?:in_progress|scheduled):1/m.test(info),
    isOk: /^aof_last_bgrewrite_status:ok/m.test(info),
  }
}
