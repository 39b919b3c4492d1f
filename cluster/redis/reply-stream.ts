/**
 * reply-stream - receives the replies that commits publish for a worker, by reading one stream to its end again and
 * again.
 *
 * PUBLISH is unsuitable, because the store writes to a slow subscriber as soon as its socket has room, which may be
 * before it writes its file. A reader has received the whole previous answer when it asks again, and answers are
 * written after the file. So there is never more than one command in flight here.
 *
 * Replies may be lost. The stream keeps the last few hundred entries, and perhaps nothing over a restart of the store.
 * Replies may come again. With every new connection the stream is read from its beginning. Every twenty seconds
 * replies already read are removed, and it is read from the beginning as well: ids that have restarted cannot hide
 * replies.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { entryIdAfter } from '../id.ts'
import { TOLD_KEPT_MS } from './commit-script.ts'
import { RedisLink, type StoreAnswer } from './link.ts'

/** Entries of one read. */
const ENTRIES_MAX = 64
/** A blocking read of an empty stream ends after this. */
const BLOCK_MS = 1_000
/** A connection on which a read waits this long is dead. */
const SILENT_MS_MAX = 5_000
const KEEP_MS = TOLD_KEPT_MS / 3
/** After a read that came to nothing. */
const RETRY_MS = 100
/** After one that the store refused. */
const REFUSED_MS = 1_000
const OPEN_MS_MAX = 1_000
const BEGINNING = '0-0'

type Entry = readonly [id: string, fields: readonly string[]]

export interface ReplyStreamOptions {
  /** `redis://` or `rediss://` address, or the path of a unix socket. */
  readonly address: string
  /** The stream; asked for each read, since a slot may move. */
  key(): string
  /** How often read entries are removed, and the stream kept from expiring; 20 s. */
  readonly keepMs?: number
}

export class ReplyStream {
  private readonly options: ReplyStreamOptions
  private readonly heard: (text: string) => void
  private link: RedisLink | null = null
  private isClosed = false
  private key = ''
  private last = BEGINNING
  private keptAtMs = Number.NEGATIVE_INFINITY

  /** Receives nothing before `begin`. */
  constructor(options: ReplyStreamOptions, heard: (text: string) => void) {
    this.options = options
    this.heard = heard
  }

  /** Receives replies from now on, earlier ones too; a second call does nothing. */
  begin(): void {
    if (this.link !== null || this.isClosed) return
    this.link = new RedisLink({
      address: this.options.address,
      name: 'told',
      silentMsMax: SILENT_MS_MAX,
      prepare: async () => {
        this.last = BEGINNING
        this.keptAtMs = Number.NEGATIVE_INFINITY
      },
    })
    void this.listen(this.link)
  }

  /** How long it has been without any answer, an empty one included; null before `begin`. */
  get lagMs(): number | null {
    return this.link === null ? null : Math.max(0, this.link.lagMs - BLOCK_MS)
  }

  close(): void {
    this.isClosed = true
    this.link?.close()
  }

  private async listen(link: RedisLink): Promise<void> {
    while (!this.isClosed) {
      if (!link.up) await link.ready(OPEN_MS_MAX).catch(() => undefined)
      const answer = link.up ? await this.read(link) : 'unsent'
      if (answer !== 'reply') await pause(answer === 'error' ? REFUSED_MS : RETRY_MS, undefined, { ref: false })
    }
  }

  /** Reads new replies, or waits a while for them. Returns the kind of the answer. */
  private async read(link: RedisLink): Promise<StoreAnswer['kind']> {
    const key = this.options.key()
    if (key !== this.key) this.keptAtMs = Number.NEGATIVE_INFINITY
    this.key = key
    if (performance.now() - this.keptAtMs >= (this.options.keepMs ?? KEEP_MS)) await this.keep(link, key)
    const wait = ['COUNT', String(ENTRIES_MAX), 'BLOCK', String(BLOCK_MS)]
    const answer = await link.call('XREAD', ...wait, 'STREAMS', key, this.last)
    if (answer.kind !== 'reply') return answer.kind
    const entries = (answer.value as [string, Entry[]][] | null)?.[0]?.[1] ?? []
    for (const [id, [, text]] of entries) {
      this.last = id
      if (text !== undefined) this.heard(text)
    }
    return 'reply'
  }

  /** A store that refuses this is read all the same. */
  private async keep(link: RedisLink, key: string): Promise<void> {
    if (this.last !== BEGINNING) await link.call('XTRIM', key, 'MINID', entryIdAfter(this.last))
    await link.call('PEXPIRE', key, String(TOLD_KEPT_MS))
    this.last = BEGINNING
    this.keptAtMs = performance.now()
  }
}
