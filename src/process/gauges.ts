/**
 * gauges - the current state of a process by name: the name of each figure on `/metrics`, and its help
 *
 * Guarantees that every reported figure is described here; otherwise it does not compile.
 */

/** The place of one figure on the page. */
export interface GaugeRow {
  /** Without what all names begin with. */
  readonly metric: string
  /** A whole sentence. */
  readonly help: string
  /** The label in braces; several figures may belong to one metric. */
  readonly label?: readonly [name: string, value: string]
  /** It only grows. */
  readonly isCounter?: true
}

const WEBHOOK_BACKLOG = 'Pending webhook deliveries on shards of this process, by health of the webhook.'
const WEBHOOK_OLDEST = 'Age of the oldest pending webhook delivery, by health of the webhook.'

/** All figures, in the order of the page. */
export const GAUGES = {
  shards: {
    metric: 'installation_shards',
    help: 'Shards of the installation.',
  },
  owned: { metric: 'shards_owned', help: 'Shards owned by this process.' },
  running: { metric: 'shards_running', help: 'Shards owned by this process that are running.' },
  halted: { metric: 'shards_halted', help: 'Shards of this process that are torn and stopped.' },
  waiting: {
    metric: 'commands_waiting',
    help: 'Commands queued on shards of this process.',
  },
  asking: {
    metric: 'asks_waiting',
    help: 'Unanswered commands that this process sent to other owners.',
  },
  commits: {
    metric: 'commits_total',
    help: 'Counts commits confirmed by the store.',
    isCounter: true,
  },
  underWay: {
    metric: 'effects_under_way',
    help: 'Attempts, lookups and other effects in progress.',
  },
  attemptsUnderWay: { metric: 'attempts_under_way', help: 'Delivery attempts in progress.' },
  attemptsWaiting: { metric: 'attempts_waiting', help: 'Delivery attempts waiting for a place at their site.' },
  sitesPaused: {
    metric: 'sites_paused',
    help: 'Sites paused after failures.',
  },
  connections: { metric: 'connections', help: 'Open SMTP sessions with receiving servers.' },
  feedsOpen: { metric: 'feeds_open', help: 'Open event feeds.' },
  searchesWaiting: { metric: 'searches_waiting', help: 'Searches that wait for a match.' },
  storeUp: { metric: 'store_up', help: 'Whether the connection to the store is open (1) or not (0).' },
  storeSound: {
    metric: 'store_sound',
    help: 'Whether the store is durable (1), or all requests are rejected (0).',
  },
  storeFill: { metric: 'store_fill_ratio', help: 'Used share of the memory of the store, from 0 to 1.' },
  diskFree: { metric: 'disk_free_ratio', help: 'Free share of the disk of DATA_DIR, from 0 to 1.' },
  backupAge: {
    metric: 'backup_age_seconds',
    help: 'Seconds since the last recorded backup of DATA_DIR began.',
  },
  webhookBacklogHealthy: { metric: 'webhook_backlog', help: WEBHOOK_BACKLOG, label: ['class', 'healthy'] },
  webhookBacklogFailing: { metric: 'webhook_backlog', help: WEBHOOK_BACKLOG, label: ['class', 'failing'] },
  domainsUndecided: {
    metric: 'domains_undecided',
    help: 'Counts verified domains of the shards of this process whose records could not be decided for a day.',
  },
  rotationProgress: {
    metric: 'secret_rotation_progress_ratio',
    help: 'Progress of the rotation of the secret, from 0 to 1; 1 if none is in progress.',
  },
  erasuresPending: {
    metric: 'erasures_pending',
    help: 'Pending erasures on shards of this process.',
  },
  erasuresDone: {
    metric: 'erasures_done_total',
    help: 'Counts all erasures completed on shards of this process.',
    isCounter: true,
  },
  erasedMessages: {
    metric: 'erased_messages_total',
    help: 'Counts all sent messages erased on shards of this process.',
    isCounter: true,
  },
  erasedReceivedMessages: {
    metric: 'erased_received_messages_total',
    help: 'Counts all received messages erased on shards of this process.',
    isCounter: true,
  },
  webhookOldestSecondsHealthy: { metric: 'webhook_oldest_seconds', help: WEBHOOK_OLDEST, label: ['class', 'healthy'] },
  webhookOldestSecondsFailing: { metric: 'webhook_oldest_seconds', help: WEBHOOK_OLDEST, label: ['class', 'failing'] },
} as const satisfies Readonly<Record<string, GaugeRow>>

export type GaugeName = keyof typeof GAUGES

/** Figures by name; missing ones are not on the page. */
export type Gauges = Readonly<Partial<Record<GaugeName, number>>>
