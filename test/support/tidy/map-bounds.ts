/**
 * map-bounds - every map and set of the service that outlives a call: those whose keys come from outside, with their
 * bounds in entries and bytes, and those that hold only what is our own, or lives no longer than one request
 */

/** What is bounded. */
export interface MapBound {
  readonly entries: number
  /** Heap of an entry at most, its key included. */
  readonly entryBytes: number
  /** Constant of the file, or of schemas/limits.ts, that is `entries`; or why there are no more. */
  readonly by: string
}

const KB = 1024
const NAME = 512
const SESSIONS = 'places: 500 sessions of the MX listener, 200 of submission'

/** Keyed by clients, senders, recipients, name servers, or by ids that clients make. */
export const BOUNDED: Readonly<Record<string, MapBound>> = {
  'src/dns/resolve.ts cache': { entries: 65_536, entryBytes: 256, by: 'CACHE_MAX; CACHE_BYTES_MAX bounds the bytes' },
  'src/dns/resolve.ts inFlight': { entries: 4_224, entryBytes: KB, by: 'WAITING_MAX and IN_FLIGHT_MAX' },
  'src/dns/client-thread.ts pending': { entries: 384, entryBytes: KB, by: 'IN_FLIGHT_MAX of three resolvers' },
  'src/dns/client-thread.ts own': { entries: 128, entryBytes: 64, by: 'IN_FLIGHT_MAX of its resolver' },
  'src/dns/sts.ts kept': { entries: 65_536, entryBytes: 128, by: 'KEPT_MAX; KEPT_BYTES_MAX bounds the bytes' },
  'src/dns/sts.ts inFlight': {
    entries: 1_024,
    entryBytes: 64 * KB,
    by: 'attempts that look for their route (dispatch.ts)',
  },
  'src/dns/budget.ts answers': { entries: 60, entryBytes: 9 * KB, by: 'QUESTIONS_MAX' },
  'src/process/bounded-cache.ts entries': {
    entries: 65_536,
    entryBytes: 256,
    by: 'entriesMax and bytesMax of its caller',
  },
  'src/http/rate.ts buckets': { entries: 100_000, entryBytes: 256, by: 'CLIENTS_MAX' },
  'src/http/scans.ts accounts': { entries: 10_000, entryBytes: 512, by: 'ACCOUNTS_MAX' },
  'src/http/generations.ts young': { entries: 16_384, entryBytes: KB, by: 'twice youngMax of its caller' },
  'src/http/noted.ts agents': { entries: 1_000, entryBytes: 2 * KB, by: 'AGENTS_MAX' },
  'src/http/client-address.ts trusted': { entries: 1_000, entryBytes: 256, by: 'PEERS_MAX' },
  'src/http/listener.ts feeds': { entries: 600, entryBytes: KB, by: 'FEEDS_MAX and USERS_FEEDS_MAX' },
  'src/http/listener.ts receiving': {
    entries: 10_000,
    entryBytes: KB,
    by: 'open connections; bodies have a budget of bytes',
  },
  'src/http/engine/node.ts connections': { entries: 10_000, entryBytes: KB, by: 'file descriptors of the process' },
  'src/http/engine/node.ts open': { entries: 16, entryBytes: KB, by: 'PIPELINED_MAX' },
  'src/routes/wait/waits.ts servers': { entries: 100, entryBytes: 256, by: 'WAITS_MAX' },
  'src/service/parts.ts openFeeds': { entries: 100, entryBytes: 256, by: 'FEEDS_MAX' },
  'src/service/parts.ts userFeeds': { entries: 500, entryBytes: 256, by: 'USERS_FEEDS_MAX' },
  'src/views/key.ts remembered': { entries: 20_000, entryBytes: KB, by: 'REMEMBERED_MAX' },
  'src/views/inbound/address.ts remembered': { entries: 20_000, entryBytes: 512, by: 'REMEMBERED_MAX' },
  'src/views/message/event.ts kept': { entries: 2_000, entryBytes: 16 * KB, by: 'KEPT_MAX' },
  'src/process/secrets.ts last': { entries: 10_000, entryBytes: 2 * KB, by: 'REMEMBERED_MAX' },
  'src/process/repeats.ts said': { entries: 500, entryBytes: KB, by: 'SENTENCES_MAX' },
  'src/process/fair-queue.ts waiting': { entries: 500, entryBytes: KB, by: 'jobs that wait, which its caller bounds' },
  'src/process/fair-queue.ts cost': { entries: 10_000, entryBytes: 256, by: 'CLIENTS_MAX' },
  'src/process/thread-room.ts serving': { entries: 500, entryBytes: 256, by: 'WAITING_MAX' },
  'src/state/remember.ts young': { entries: 2_048, entryBytes: 4 * KB, by: 'YOUNG_MAX' },
  'src/store/listed.ts kept': { entries: 8, entryBytes: 10 * KB * KB, by: 'KEPT_MAX' },
  'src/store/request-log.ts answered': { entries: 50_000, entryBytes: KB, by: 'NOTED_MAX' },
  'src/content/sealed/segment.ts tails': { entries: 500, entryBytes: 64 * KB, by: 'TAILS_MAX' },
  'src/content/sealed/segment.ts fronts': { entries: 2_000, entryBytes: KB, by: 'FRONTS_MAX' },
  'src/content/sealed/segment.ts blocks': {
    entries: 500,
    entryBytes: 16 * KB,
    by: 'BLOCKS_MAX; BLOCKS_BYTES_MAX bounds the bytes',
  },
  'src/content/contents.ts damaged': { entries: 100, entryBytes: NAME, by: 'DAMAGED_MAX' },
  'src/content/files.ts made': { entries: 4_096, entryBytes: NAME, by: 'FOLDERS_MAX' },
  'src/content/folder-sync.ts running': { entries: 4_096, entryBytes: NAME, by: 'writes under way, one folder each' },
  'src/content/folder-sync.ts next': { entries: 4_096, entryBytes: NAME, by: 'writes under way, one folder each' },
  'src/outbound/byte-budget.ts sites': { entries: 256, entryBytes: 2 * KB, by: 'attempts under way (sites.ts)' },
  'src/outbound/dispatch.ts routing': { entries: 1_024, entryBytes: NAME, by: 'ROUTING_MAX' },
  'src/outbound/open.ts told': { entries: 1_000, entryBytes: NAME, by: 'TOLD_MAX' },
  'src/outbound/signing-keys.ts opened': { entries: 2_000, entryBytes: 4 * KB, by: 'OPENED_MAX' },
  'src/outbound/sites.ts sites': { entries: 10_000, entryBytes: 5 * KB, by: 'SITES_MAX' },
  'src/outbound/sites.ts domains': { entries: 65_536, entryBytes: 512, by: 'DOMAINS_MAX' },
  'src/outbound/sites.ts hungry': { entries: 10_000, entryBytes: 64, by: 'SITES_MAX' },
  'src/outbound/sites.ts waiting': { entries: 4_096, entryBytes: 256, by: 'WAITING_ALL_MAX' },
  'src/outbound/thread-pool.ts pending': {
    entries: 4_352,
    entryBytes: 4 * KB,
    by: 'attempts under way; their bytes have a budget',
  },
  'src/outbound/thread/thread.ts underWay': { entries: 256, entryBytes: 4 * KB, by: 'attempts under way (sites.ts)' },
  'src/outbound/thread/thread.ts shunned': { entries: 10_000, entryBytes: 256, by: 'SHUNNED_MAX (transmit.ts)' },
  'src/outbound/thread/attempt.ts untilMs': { entries: 10_000, entryBytes: NAME, by: 'BROKEN_TLS_MAX' },
  'src/outbound/thread/outgoing.ts kept': { entries: 4, entryBytes: 14 * KB * KB, by: 'KEPT_MAX' },
  'src/outbound/thread/sign.ts parsed': { entries: 1_000, entryBytes: 8 * KB, by: 'PARSED_MAX' },
  'src/outbound/thread/session-pool.ts sites': { entries: 10_000, entryBytes: 2 * KB, by: 'SITES_MAX' },
  'src/outbound/thread/session-pool.ts idle': {
    entries: 256,
    entryBytes: 4 * KB,
    by: 'connections, which connectionsMax bounds',
  },
  'src/outbound/thread/session-pool.ts closing': {
    entries: 256,
    entryBytes: KB,
    by: 'connections, which connectionsMax bounds',
  },
  'src/outbound/thread/relay.ts idle': {
    entries: 256,
    entryBytes: 4 * KB,
    by: 'connections, which connectionsMax bounds',
  },
  'src/outbound/thread/relay.ts sessions': {
    entries: 256,
    entryBytes: 4 * KB,
    by: 'connections, which connectionsMax bounds',
  },
  'src/outbound/thread/relay.ts waiting': { entries: 10_000, entryBytes: 256, by: 'WAITING_MAX' },
  'src/reception/places.ts clients': { entries: 500, entryBytes: NAME, by: SESSIONS },
  'src/reception/places.ts idle': { entries: 500, entryBytes: NAME, by: SESSIONS },
  'src/reception/sender-rate.ts atOnce': { entries: 500, entryBytes: NAME, by: SESSIONS },
  'src/reception/sender-rate.ts perMinute': { entries: 50_000, entryBytes: 256, by: 'SENDERS_MAX' },
  'src/reception/mx-server.ts open': { entries: 500, entryBytes: 4 * KB, by: SESSIONS },
  'src/reception/mx-listener.ts sessions': { entries: 500, entryBytes: KB, by: SESSIONS },
  'src/reception/mx-listener.ts targets': { entries: 100, entryBytes: 2 * KB, by: 'recipients of one transaction' },
  'src/reception/submission/listener.ts open': { entries: 200, entryBytes: 4 * KB, by: 'SUBMISSION_CONNECTIONS_MAX' },
  'src/reception/submission/failed-logins.ts failures': { entries: 50_000, entryBytes: 512, by: 'CLIENTS_MAX' },
  'src/reception/fresh-mails.ts kept': {
    entries: 80_000,
    entryBytes: 400,
    by: 'KEPT_BYTES_MAX, of mails of 100 bytes at least',
  },
  'src/reception/judge-lane.ts underWay': { entries: 32, entryBytes: KB, by: 'UNDER_WAY_MAX' },
  'src/reception/judge-thread.ts open': {
    entries: 64,
    entryBytes: 256 * KB,
    by: 'mails that are parsed at once (parse-lane.ts)',
  },
  'src/reception/parse-lane.ts slow': { entries: 50_000, entryBytes: 256, by: 'KNOWN_MAX' },
  'src/reception/parse-lane.ts underWay': { entries: 64, entryBytes: KB, by: 'UNDER_WAY_MAX' },
  'src/reception/parse-lane.ts turns': { entries: 64, entryBytes: KB, by: 'UNDER_WAY_MAX' },
  'src/reception/parse-lane.ts waiting': { entries: 64, entryBytes: KB, by: 'UNDER_WAY_MAX' },
  'src/service/operator-use.ts noted': { entries: 1_000, entryBytes: 256, by: 'KNOWN_MAX' },
  'src/webhooks/pace.ts hosts': { entries: 2_048, entryBytes: KB, by: 'posts under way (perform.ts)' },
  'src/webhooks/perform.ts underWay': { entries: 2_048, entryBytes: KB, by: 'UNDER_WAY_MAX' },
  'src/webhooks/perform.ts known': { entries: 50_000, entryBytes: 256, by: 'KNOWN_MAX' },
  'src/webhooks/post.ts fresh': { entries: 5_000, entryBytes: NAME, by: 'HOSTS_MAX' },
  'src/webhooks/post.ts lingering': { entries: 256, entryBytes: 80 * KB, by: 'LINGERING_MAX' },
  'src/webhooks/secrets.ts opened': { entries: 10_000, entryBytes: NAME, by: 'OPENED_MAX' },
  'src/mail/mime/charset.ts known': { entries: 100, entryBytes: KB, by: 'KNOWN_MAX' },
  'src/mail/mime/walk.ts boundaries': { entries: 50, entryBytes: 2 * KB, by: 'DEPTH_MAX' },
  'cluster/items/pump.ts underWay': {
    entries: 8_192,
    entryBytes: KB,
    by: 'effects under way, which the room of each lane bounds',
  },
}

/** Files, or maps of a file, of our own data, or of one request, mail, look or command. */
export const OWN: Readonly<Record<string, string>> = {
  'cluster/embedded': 'files of the embedded Redis',
  'cluster/facts': 'keys that a batch of at most 64 commands reads or writes, and caches that field-cache.ts bounds',
  'cluster/items': 'lanes and items of the shards of this process: what waits in the store',
  'cluster/mailbox': 'processes and shards',
  'cluster/redis': 'channels, scripts and keys of shards; sure-keys.ts is bounded by its own maximum',
  'cluster/shard': 'lanes, keys of a batch, shards',
  'cluster/slots': 'nodes and slots of a Redis Cluster',
  'cluster/worker': 'shards, processes, and asks that are open, which have a maximum and a deadline',
  'schemas/document': 'our own schemas',
  'src/content/sealed/postings.ts': 'one segment, while it is sealed',
  'src/content/sealed/reader.ts': 'one look at a segment',
  'src/process/metrics.ts': 'labels from fixed lists',
  'src/process/metrics-page.ts': 'names of figures',
  'src/process/request-tally.ts': 'our own routes and statuses',
  'src/http/engine/router.ts': 'our own routes',
  'src/http/shape/issues.ts': 'patterns of our own schemas',
  'src/service/parts.ts onStoreUp': 'parts of the process',
  'src/state/person.ts': 'persons that one command names',
  'src/state/request-row.ts': 'kinds of rows of one second, whose bytes have a maximum',
  'src/state/webhook/of-message.ts': 'one command',
  'src/store/cluster/watch-each.ts': 'nodes of a Redis Cluster',
  'src/views/stats.ts': 'one look',
  'src/views/inbound/rows.ts': 'one look',
  'src/views/operator/queue-figures.ts': 'one look',
  'src/actors': 'one command',
  'src/doors': 'one request',
  'src/sending': 'one request',
  'src/routes/pages/docs-page.ts': 'files of the built site',
  'src/mail/authenticate/body-hash.ts': 'signatures of one mail, which signatures.ts bounds',
  'src/mail/authenticate/header-verifier.ts': 'signatures of one mail, which signatures.ts bounds',
  'src/mail/authenticate/look-up.ts': 'look-ups of one mail, 60 at most',
  'src/mail/mime/mail-header.ts': 'fields of one mail',
}
