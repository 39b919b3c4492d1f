/**
 * limits - every number that the contract gives a request, an answer or a key
 *
 * Each constant has the id of its rule in schemas/README.md, and its name ends with the unit.
 */

/** Spec request.body.max: bytes of a request body (10 MiB). */
export const BODY_BYTES_MAX = 10 * 1024 * 1024
/** Spec request.idempotency: characters of an Idempotency-Key. */
export const IDEMPOTENCY_KEY_CHARS_MAX = 255
/** Spec request.idempotency: how long an accepted answer is kept. */
export const IDEMPOTENCY_HOURS = 24
/** Spec error.issues: issues in one refusal. */
export const ISSUES_MAX = 100

/** Spec batch.all: messages of a batch. */
export const BATCH_MESSAGES_MAX = 100
/** Spec send.at: days ahead that a message can be scheduled for, on a live server and on a test server. */
export const SEND_AT_DAYS_MAX = 27
export const TEST_SEND_AT_DAYS_MAX = 6
/** Spec send.at: seconds that the time may be in the past; such a message is sent at once. */
export const SEND_AT_PAST_SECONDS_MAX = 60
/** Spec send.at: scheduled recipients of a server. */
export const SCHEDULED_MAX = 100_000
/** Spec send.recipients.max: entries of to, cc and bcc together. */
export const RECIPIENTS_MAX = 50
/** Spec send.size: bytes of a message as built. */
export const MESSAGE_BYTES_MAX = 10 * 1024 * 1024
/** Spec send.subject */
export const SUBJECT_CHARS_MAX = 998
/** Spec send.headers */
export const HEADERS_MAX = 20
/** Spec send.headers */
export const HEADER_NAME_CHARS_MAX = 76
/** Spec send.headers */
export const HEADER_VALUE_CHARS_MAX = 998
/** Spec send.attachments */
export const ATTACHMENTS_MAX = 20
/** Spec send.attachments */
export const ATTACHMENT_NAME_CHARS_MAX = 255
/** Spec send.attachments */
export const CONTENT_ID_CHARS_MAX = 255
/** Spec send.tag */
export const TAG_CHARS_MAX = 100
/** Spec send.metadata */
export const METADATA_MAX = 20
/** Spec send.metadata */
export const METADATA_KEY_CHARS_MAX = 40
/** Spec send.metadata */
export const METADATA_VALUE_CHARS_MAX = 500

/** Spec address.grammar: the whole address. */
export const ADDRESS_CHARS_MAX = 254
/** Spec address.grammar: the part before the @. */
export const LOCAL_PART_CHARS_MAX = 64
/** Spec address.grammar: one label of the domain (RFC 1035 2.3.4). */
export const LABEL_CHARS_MAX = 63
/** Spec address.grammar: a host name in text form (RFC 1035 2.3.4). */
export const DOMAIN_CHARS_MAX = 253
/** Spec address.name: the display name of an address. */
export const ADDRESS_NAME_CHARS_MAX = 200

/** Spec name.max: names of servers, streams and keys. */
export const NAME_CHARS_MAX = 100
/** Spec stream.patch: days for which an inbound stream keeps content, and by default. */
export const CONTENT_RETENTION_DAYS_MAX = 30
/** Spec retention.settings: days for which the text and HTML of sent mail are kept, and by default. */
export const SENT_CONTENT_DAYS_MAX = 30
/** Spec retention.settings: the same on a test server. */
export const TEST_SENT_CONTENT_DAYS_MAX = 7
/** Spec retention.settings: months for which the log is kept, and by default; days that it is kept at least. */
export const LOG_RETENTION_MONTHS_MAX = 13
export const LOG_RETENTION_MONTHS_MIN = 1
export const LOG_RETENTION_DAYS_MIN = 31
/** Spec unsubscribe.days: days after the last attempt for which an unsubscribe link works, at least. */
export const UNSUBSCRIBE_LINK_DAYS = 60
/** Spec inbound.search: characters after the plus sign of an address. */
export const MAILBOX_HASH_CHARS_MAX = 255
/** Spec inbound.event: people of one field that an event names. */
export const EVENT_PEOPLE_MAX = 100
/** Spec inbound.search: received messages that one search reads. */
export const RECEIVED_LOOKED_AT_MAX = 10_000
/** Active keys of operators. */
export const OPERATOR_KEYS_MAX = 50
/** Spec queue.order: recipients that one order moves; the answer has their number. */
export const QUEUE_ORDER_MAX = 10_000
/** Spec message.search: messages that one search reads. */
export const MESSAGES_LOOKED_AT_MAX = 10_000
/** Spec list.page: page of a list. */
export const PAGE_MAX = 100
/** Spec list.page: page of a list that names no limit. */
export const PAGE_DEFAULT = 50
/** Spec suppression.search: page of suppressions. */
export const SUPPRESSIONS_PAGE_MAX = 1000
/** Spec suppression.search: page of a search that names no limit. */
export const SUPPRESSIONS_PAGE_DEFAULT = 100
/** Spec suppression.search: entries that one search reads. */
export const SUPPRESSIONS_LOOKED_AT_MAX = 10_000
/** Spec suppression.add: addresses of one request. */
export const SUPPRESSIONS_ADDED_MAX = 1000
/** Spec key.live.max: live keys of one server, and of one account. */
export const LIVE_KEYS_MAX = 2

/** Spec bounce.late: days after delivery in which a bounce still counts. */
export const BOUNCE_DAYS_MAX = 14
/** Spec bounce.grace: hours in which mail to a domain whose records went missing is put off. */
export const GRACE_HOURS = 72
/** Spec mx.size: bytes of a mail that is received (35 MiB). */
export const MAIL_BYTES_MAX = 36_700_160
/** Spec webhook.raw: bytes of a received mail whose source a webhook carries (10 MiB). */
export const RAW_EMAIL_BYTES_MAX = 10 * 1024 * 1024
/** Spec mx.rate: connections of one sender at once. */
export const MX_CONNECTIONS_MAX = 30
/** Spec mx.rate: connections of one sender in a minute. */
export const MX_CONNECTIONS_PER_MINUTE_MAX = 300
/** Spec bounce.unread: returned mail that could not be read, and the days for which it is kept. */
export const REPORTS_UNREAD_MAX = 100
export const REPORTS_UNREAD_DAYS = 7
/** Spec reports.bounds: bytes of a report as it comes, and bytes and rows of it unpacked. */
export const REPORT_PACKED_BYTES_MAX = 10 * 1024 * 1024
export const REPORT_BYTES_MAX = 100 * 1024 * 1024
export const REPORT_ROWS_MAX = 200_000
/** Spec reports.bounds: reports about a domain that count on a day, and unauthenticated ones that are listed. */
export const REPORTS_PER_DAY_MAX = 100
export const REPORTS_APART_PER_DAY_MAX = 20
/** Spec reports.period: days that the period of a report may be in the past. */
export const REPORT_AGE_DAYS_MAX = 25
/** Spec reports.rows: rows and bytes of a domain and day that are kept apart, of each class. */
export const REPORT_CLASS_ROWS_MAX = 250
export const REPORT_CLASS_BYTES_MAX = 32 * 1024
/** Spec reports.read: days in one request. */
export const REPORT_SPAN_DAYS_MAX = 92
/** Spec reports.read: groups of an answer. */
export const REPORT_GROUPS_MAX = 1_000
/** Spec mx.rate: the same for an IPv6 /56. */
export const MX_SITE_CONNECTIONS_MAX = 60
export const MX_SITE_CONNECTIONS_PER_MINUTE_MAX = 600
/** Spec mx.places: open connections of a process, and from how many on a newcomer displaces one without a mail. */
export const MX_PLACES_MAX = 500
export const MX_CROWDED_FROM = 375
/** Spec mx.idle: commands since the last mail, minutes since then, and minutes of a session in all. */
export const MX_COMMANDS_MAX = 200
export const MX_MAILLESS_MINUTES_MAX = 10
export const MX_SESSION_MINUTES_MAX = 60
/** Spec mx.size: recipients of one received mail. */
export const MX_RECIPIENTS_MAX = 50
/** Spec mx.slow: minutes in which a mail has to come. */
export const MX_DATA_MINUTES_MAX = 20
/** Spec mx.refused: recipients refused for good in one session. */
export const MX_REFUSED_MAX = 10
/** Spec submission.connections: open connections of one listener. */
export const SUBMISSION_CONNECTIONS_MAX = 200
/** Spec submission.time: seconds without a word. */
export const SUBMISSION_IDLE_SECONDS = 60
/** Spec submission.connections: from this number of connections on, a new one displaces one without login. */
export const SUBMISSION_CROWDED_FROM = 150
/** Spec submission.time: seconds from connecting to being logged in. */
export const SUBMISSION_LOGIN_SECONDS = 60
/** Spec submission.time: seconds of the handshake where TLS begins with the first byte. */
export const SUBMISSION_HANDSHAKE_SECONDS = 20
/** Spec submission.time: minutes that a message may take. */
export const SUBMISSION_DATA_MINUTES = 10
/** Spec submission.login: failed logins of one connection. */
export const SUBMISSION_SESSION_LOGINS_MAX = 3
/** Spec submission.login: failed logins of one client, and the minutes in which they count. */
export const SUBMISSION_LOGINS_FAILED_MAX = 10
export const SUBMISSION_LOGIN_MINUTES = 15
/** Spec stream.brake: deliveries of 24 hours from which on complaints may stop a stream. */
export const BRAKE_DELIVERIES_MIN = 1000
/** Spec stream.brake: complaints for each thousand deliveries that a stream may have. */
export const BRAKE_COMPLAINTS_PER_THOUSAND = 1
/** Spec webhook.secrets: live signing secrets of a webhook. */
export const WEBHOOK_SECRETS_MAX = 2
/** Spec webhook.url: characters of a webhook's URL. */
export const WEBHOOK_URL_CHARS_MAX = 2048
/** Spec webhook.retry: seconds between a failed attempt and the next. */
export const WEBHOOK_RETRIES_SECONDS: readonly number[] = [30, 120, 600, 1800, 3600, 10_800, 21_600, 43_200]
/** Spec webhook.attempt: seconds that a receiver has for its answer. */
export const WEBHOOK_ANSWER_SECONDS = 10
/** Spec list.page: deliveries of a page, and of one that names no limit. */
export const DELIVERIES_PAGE_MAX = 1000
export const DELIVERIES_PAGE_DEFAULT = 100
/** Spec webhook.health: dead deliveries of a webhook that are counted, and newest deliveries that are looked at. */
export const WEBHOOK_DEAD_COUNTED_MAX = 1000
export const WEBHOOK_RECENT = 100
/** Spec webhook.backlog: deliveries of one webhook that wait. */
export const WEBHOOK_BACKLOG_MAX = 100_000

/** Spec account.limits: emails a minute of an account, and of its test servers together. */
export const PER_MINUTE_DEFAULT = 300
/** Spec account.limits: emails a month of an account approved without an application, and of its test servers. */
export const MONTHLY_CAP_DEFAULT = 10_000
/** Spec account.limits: caps that an approval grants by the volume applied for. */
export const APPROVED_CAPS: readonly number[] = [10_000, 50_000, 250_000, 1_000_000]
/** Spec account.limits: `highestCap` null means this many times `approvedCap`. */
export const HIGHEST_CAP_FACTOR = 10
/** Spec account.limits: servers of an account. */
export const SERVER_LIMIT_DEFAULT = 10
/** Spec account.create: addresses that are mailed about an account. */
export const ADMINISTRATORS_MAX = 50
/** Spec operator.account: the largest figure an operator may set. */
export const OPERATOR_INTEGER_MAX = 1_000_000_000
/** Spec operator.audit: months that an entry of the audit log stays, at least. */
export const AUDIT_MONTHS = 13
/** Spec operator.note: characters of the note of an operator's act. */
export const NOTE_CHARS_MAX = 1000

/**
 * Spec event.feed: minimum number of events from which a feed can resume, and minutes after the last feed for which
 * they are kept.
 */
export const FEED_EVENTS_KEPT = 10_000
export const FEED_KEPT_MINUTES = 10
/** Spec event.search: days for which the events of a server are kept. */
export const EVENT_LOG_DAYS = 30
/** Spec event.search: events of a page, of a page without `limit`, and events that one search reads. */
export const EVENTS_PAGE_MAX = 1000
export const EVENTS_PAGE_DEFAULT = 100
export const EVENTS_LOOKED_AT_MAX = 10_000
/** Spec search.wait: seconds that a search waits, and waits that one process has open of one server, and in all. */
export const WAIT_SECONDS_MAX = 30
export const SERVER_WAITS_MAX = 10
export const WAITS_MAX = 100
/** Spec export.bounds: exports that one process has open of one account, and in all; their rows and minutes. */
export const ACCOUNT_EXPORTS_MAX = 2
export const EXPORTS_MAX = 20
export const EXPORT_ROWS_MAX = 1_000_000
export const EXPORT_MINUTES_MAX = 60
/** Spec event.feed: feeds that one process has open of one server, and in all. */
export const SERVER_FEEDS_MAX = 5
export const FEEDS_MAX = 100
/** Spec member.live: feeds that one process has open of one user, and of all users. */
export const USER_FEEDS_MAX = 5
export const USERS_FEEDS_MAX = 500

/** Spec inbound.authentication.rounds: minutes after the first round at which a mail is judged again. */
export const AUTHENTICATION_ROUNDS_MINUTES: readonly number[] = [1, 5, 10]

/** Spec broadcast.body: bytes of the body of a broadcast. */
export const BROADCAST_BODY_BYTES_MAX = 64 * 1024 * 1024
/** Spec broadcast.size: bytes of a broadcast as built. */
export const BROADCAST_BYTES_MAX = 50 * 1024 * 1024
/** Spec broadcast.messages */
export const BROADCAST_MESSAGES_MAX = 50_000
/** Spec broadcast.substitutions: of one message. */
export const SUBSTITUTIONS_MAX = 20
/** Spec broadcast.substitutions */
export const SUBSTITUTION_NAME_CHARS_MAX = 40
/** Spec broadcast.substitutions */
export const SUBSTITUTION_CHARS_MAX = 500
/** Spec broadcast.pace: messages a minute of a stream, unless an operator has set another value. */
export const PACE_PER_MINUTE_DEFAULT = 600

/** Spec stats.read: days that an answer by the hour covers. */
export const STATS_HOURS_DAYS_MAX = 31
/** Spec stats.read: rows of an answer. */
export const STATS_ROWS_MAX = 10_000
/** Spec stats.groups: names of a kind that a server and day have besides the rest. */
export const GROUP_SITES_MAX = 30
export const GROUP_CLASSES_MAX = 20
export const GROUP_TAGS_MAX = 50
/** Spec stats.groups: messages read to name one tag, and all tags of an answer. */
export const TAG_LOOKED_AT_MAX = 1_000
export const TAGS_LOOKED_AT_MAX = 10_000
/** Spec stats.groups: days for which groups are kept by the hour. */
export const GROUP_HOURS_DAYS = 8
/** Spec stats.groups: deliveries without which there are no percentiles. */
export const HAND_OVER_LEAST = 20
/** Spec webhook.delivery: bytes of a receiver's last answer that are kept. */
export const LAST_RESPONSE_BYTES_MAX = 512

/** Spec session.password: characters of a password. */
export const PASSWORD_CHARS_MIN = 12
export const PASSWORD_CHARS_MAX = 128
/** Spec member.accounts: accounts that a user is a member of. */
export const USER_ACCOUNTS_MAX = 50
/** Spec session.life: sessions of a user at once. */
export const USER_SESSIONS_MAX = 20
/** Spec session.life: days without use, and days in all, after which a session ends. */
export const SESSION_IDLE_DAYS = 7
export const SESSION_DAYS = 30
/** Spec session.confirm: minutes for which a confirmation holds. */
export const CONFIRMED_MINUTES = 15
/** Spec session.factor: passkeys of a user, recovery codes made at once, minutes in which a second step is taken. */
export const PASSKEYS_MAX = 10
export const RECOVERY_CODES = 10
export const SECOND_STEP_MINUTES = 10
/** Spec link.once: characters of a link's token, at most. */
export const LINK_TOKEN_CHARS_MAX = 200
/** Spec member.role: members of an account. */
export const MEMBERS_MAX = 200
/** Spec invitation.send: invitations of an account that wait. */
export const INVITATIONS_MAX = 100
/** Spec session.limits: minutes in which tries count, and how many of each kind an address and a client have. */
export const TRIES_MINUTES = 15
export const SIGN_INS_OF_ADDRESS_MAX = 10
/** Devices of a user whose tries count apart from those with the address, and the days that their cookies live. */
export const USER_DEVICES_MAX = 10
export const DEVICE_DAYS = 180
export const SIGN_INS_OF_CLIENT_MAX = 30
export const MAILED_LINKS_OF_ADDRESS_MAX = 3
export const MAILED_LINKS_OF_CLIENT_MAX = 10
export const CONFIRMATIONS_OF_USER_MAX = 10
export const INVITATIONS_OF_ADDRESS_MAX = 3
export const INVITATIONS_OF_CLIENT_MAX = 20
/** Spec link.purpose: how long links work. */
export const INVITATION_DAYS = 7
export const MAILED_LINK_MINUTES = 30
export const SETUP_HOURS = 24
/** Spec operator.session, operator.link: hours of a session of the operator, minutes of a link that opens one. */
export const OPERATOR_SESSION_HOURS = 8
export const DESK_LINK_MINUTES = 30
/** Spec request.log: requests of an account that stay, refused ones and others each. */
export const REQUESTS_KEPT_MAX = 10_000

/** Spec egress.document: sources, pools, rules, sources of a pool, limits of a source, days of a warm-up. */
export const EGRESS_SOURCES_MAX = 64
export const EGRESS_POOLS_MAX = 32
export const EGRESS_RULES_MAX = 200
export const EGRESS_POOL_SOURCES_MAX = 32
export const EGRESS_LIMITS_MAX = 50
export const EGRESS_WARMUP_DAYS_MAX = 90
/** Bytes of the document. */
export const EGRESS_BYTES_MAX = 256 * 1024
