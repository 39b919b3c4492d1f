/**
 * figures - what a process is at this moment, by name: how each figure is called on `/metrics`, and what it says
 *
 * Guarantee: whoever tells a figure has to describe it here; the compiler says so when not.
 */

/** How one figure stands on the page. */
export interface FigureRow {
  /** Without what all names begin with. */
  readonly metric: string
  /** A whole sentence. */
  readonly help: string
  /** As it stands in braces; several figures may be of one metric. */
  readonly label?: readonly [name: string, value: string]
  /** It only grows. */
  readonly isCounter?: true
}

const WEBHOOK_BACKLOG =
  'Tells how many deliveries wait for webhooks of the shards of this process, by how the webhooks fare.'
const WEBHOOK_OLDEST = 'Tells the age of the oldest delivery that waits for a webhook, by how the webhooks fare.'

/** All figures, in the order of the page. */
export const FIGURES = {
  shards: {
    metric: 'installation_shards',
    help: 'Tells how many shards the installation has, whichever processes own them.',
  },
  owned: { metric: 'shards_owned', help: 'Tells how many shards this process owns.' },
  running: { metric: 'shards_running', help: 'Tells how many shards this process owns that do their work.' },
  halted: { metric: 'shards_halted', help: 'Tells how many shards of this process are torn and stay stopped.' },
  waiting: {
    metric: 'commands_waiting',
    help: 'Tells how many commands wait in the queues of the shards of this process.',
  },
  asking: {
    metric: 'asks_waiting',
    help: 'Tells how many commands this process has sent to other owners that are not answered.',
  },
  commits: {
    metric: 'commits_total',
    help: 'Counts commits of this process that the store has confirmed.',
    isCounter: true,
  },
  underWay: {
    metric: 'effects_under_way',
    help: 'Tells how many attempts, look-ups and other effects this process is performing.',
  },
  attemptsUnderWay: { metric: 'attempts_under_way', help: 'Tells how many attempts at mail servers are being made.' },
  attemptsWaiting: { metric: 'attempts_waiting', help: 'Tells how many attempts wait for a place at their site.' },
  sitesPaused: {
    metric: 'sites_paused',
    help: 'Tells to how many sites nothing is sent for a while, because they failed.',
  },
  connections: { metric: 'connections', help: 'Tells how many SMTP sessions with receiving servers are open.' },
  feedsOpen: { metric: 'feeds_open', help: 'Tells how many event feeds are being heard.' },
  storeUp: { metric: 'store_up', help: 'Tells whether the connection to the store is open (1) or not (0).' },
  storeSound: {
    metric: 'store_sound',
    help: 'Tells whether the store keeps what it takes (1), or nothing is accepted (0).',
  },
  storeFill: { metric: 'store_fill_ratio', help: 'Tells which share of its memory the store has filled, from 0 to 1.' },
  webhookBacklogHealthy: { metric: 'webhook_backlog', help: WEBHOOK_BACKLOG, label: ['class', 'healthy'] },
  webhookBacklogFailing: { metric: 'webhook_backlog', help: WEBHOOK_BACKLOG, label: ['class', 'failing'] },
  domainsUndecided: {
    metric: 'domains_undecided',
    help: 'Counts verified domains of the shards of this process whose records could not be decided for a day.',
  },
  erasuresPending: {
    metric: 'erasures_pending',
    help: 'Tells how many erasures of the shards of this process are not done.',
  },
  erasuresDone: {
    metric: 'erasures_done_total',
    help: 'Counts the erasures of the shards of this process that were done, since ever.',
    isCounter: true,
  },
  erasedMessages: {
    metric: 'erased_messages_total',
    help: 'Counts the sent messages that erasures of the shards of this process have emptied, since ever.',
    isCounter: true,
  },
  erasedReceivedMessages: {
    metric: 'erased_received_messages_total',
    help: 'Counts the received messages whose content erasures of the shards of this process took, since ever.',
    isCounter: true,
  },
  webhookOldestSecondsHealthy: { metric: 'webhook_oldest_seconds', help: WEBHOOK_OLDEST, label: ['class', 'healthy'] },
  webhookOldestSecondsFailing: { metric: 'webhook_oldest_seconds', help: WEBHOOK_OLDEST, label: ['class', 'failing'] },
} as const satisfies Readonly<Record<string, FigureRow>>

export type FigureName = keyof typeof FIGURES

/** Figures by name; one that is not told is not on the page. */
export type Figures = Readonly<Partial<Record<FigureName, number>>>
