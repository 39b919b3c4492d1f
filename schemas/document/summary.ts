/**
 * summary - one sentence for every route, as documents show it, and the group that the route stands in
 *
 * Spec openapi.document
 */

import type { RouteName } from '../routes.ts'

/** What each route does, for who calls it. */
export const SUMMARIES: Readonly<Record<RouteName, string>> = {
  readOpenapi: 'Read the OpenAPI document of these routes',
  sendEmail: 'Send one message to up to 50 recipients',
  sendBatch: 'Send up to 100 messages, all or none of them',
  readServer: 'Read the server of the key: its limits and the domains that it may send from',
  searchMessages: 'Search the messages of the server by recipient, sender, tag, metadata, status or time',
  readMessage: 'Read one message with its recipients, its events and its content while that is kept',
  searchReceived: 'Search the messages that the server has received',
  readReceived: 'Read one received message with its content while that is kept',
  readReceivedRaw: 'Download a received message, byte for byte as it came',
  readReceivedFile: 'Download one attachment of a received message',
  listenToEvents: 'Hear every event of the server from now on, as server-sent events',
  listStreams: 'List the streams of the server',
  createStream: 'Make a stream',
  readStream: 'Read one stream',
  patchStream: 'Rename a stream or change how long it keeps content',
  archiveStream: 'Archive a stream: nothing is sent on it any more',
  listTokens: 'List the keys of the server, live and revoked',
  createToken: 'Make a key of the server; its value is shown only now',
  revokeToken: 'Revoke a key of the server, at once and for good',
  readAccount: 'Read the account of the key: its status and its limits',
  listAccountTokens: 'List the keys of the account, live and revoked',
  revokeAccountToken: 'Revoke a key of the account, at once and for good',
  listServers: 'List the servers of the account',
  createServer: 'Make a live or a test server with its first key',
  readAccountServer: 'Read one server of the account',
  patchServer: 'Rename a server or change its own limits',
  deleteServer: 'Remove a server: its keys end at once, accepted mail still goes out',
  listServerTokens: 'List the keys of a server, live and revoked',
  createServerToken: 'Make a key of a server; its value is shown only now',
  revokeServerToken: 'Revoke a key of a server, at once and for good',
  listDomains: 'List the sending domains of the account',
  addDomain: 'Add a sending domain; the answer holds the DNS records to create',
  readDomain: 'Read one sending domain with its DNS records',
  deleteDomain: 'Remove a sending domain: new mail from it is refused at once',
  rotateDkim: 'Order another DKIM key; it signs once its record is found',
  verifyDomain: 'Look the DNS records of a domain up now',
  searchSuppressions: 'Search the addresses that are not written to',
  addSuppressions: 'Put addresses on the suppression list of a stream',
  readSuppression: 'Read one entry of a suppression list',
  liftSuppression: 'Lift a suppression: the address may be written to again',
  createBroadcast: 'Send one message to up to 50,000 people, released at a pace',
  listBroadcasts: 'List broadcasts, newest first',
  readBroadcast: 'Read a broadcast and how far it has come',
  cancelBroadcast: 'Cancel a broadcast: what was not released never is',
  pauseBroadcast: 'Pause a broadcast',
  resumeBroadcast: 'Resume a paused broadcast',
  createWebhook: 'Register a URL to which events are posted; the answer holds its signing secret',
  listWebhooks: 'List the webhooks of the server',
  readWebhook: 'Read one webhook',
  deleteWebhook: 'Remove a webhook and what waits for it',
  enableWebhook: 'Switch a webhook on',
  disableWebhook: 'Switch a webhook off: what waits for it is dead, and can be replayed',
  addWebhookSecret: 'Add a second signing secret: posts are signed with both',
  deleteWebhookSecret: 'Remove a signing secret',
  listDeliveries: 'List what was posted to a webhook',
  readDelivery: 'Read one delivery with the body that it would carry now',
  replayDelivery: 'Queue one delivery again',
  replayDead: 'Queue all dead deliveries of a time again',
  testWebhook: 'Post an example of an event to a webhook',
  readOperatorOpenapi: "Read the OpenAPI document of the operator's routes",
  readHealth: 'Tell that the process lives',
  readReadiness: 'Tell whether the store answers and every shard has an owner',
  readMetrics: 'Read the metrics in the text format of Prometheus',
  examineHealth: 'Examine store, disk, clocks, DNS, ports and certificate, with what mends each fault',
  readEvents: 'Hear every event of a server from now on, as server-sent events',
  listAccounts: 'List all accounts',
  createAccount: 'Make an account, without a server and without a key',
  readAccountAsOperator: 'Read an account, with how its mail fared in the last 24 hours',
  patchAccount: "Change an account's limits",
  approveAccount: 'Let a pending account send live mail',
  pauseAccount: 'Refuse new mail of an account and hold what was accepted',
  resumeAccount: 'Take mail of an account again and let go what waits',
  closeAccount: 'Close an account for good; accepted mail is still delivered',
  listAccountTokensAsOperator: 'List the keys of an account',
  createAccountToken: 'Make a key of an account; its value is shown only now',
  revokeAccountTokenAsOperator: 'Revoke a key of an account',
  listServersAsOperator: 'List the servers of an account',
  createServerAsOperator: 'Make a server of an account, with its first key',
  listServerTokensAsOperator: 'List the keys of a server',
  createServerTokenAsOperator: 'Make a key of a server; its value is shown only now',
  revokeServerTokenAsOperator: 'Revoke a key of a server',
  pauseStream: 'Stop a stream',
  resumeStream: 'Let a stream go on',
  paceStream: 'Set how many messages a minute the broadcasts of a stream release',
  operatorSearchSuppressions: 'Search the suppression lists of a server',
  operatorLiftSuppression: 'Lift any suppression',
  listQueue: 'List what waits for delivery, by destination',
  retryQueue: 'Make what waits for a destination due now',
  holdQueue: 'Attempt nothing of a destination until it is released',
  releaseQueue: 'End a hold',
  dropQueue: 'End what waits for a destination: its recipients bounce',
  readShards: 'List the processes and their shards',
  readEntity: 'Read the last states of an account, a server, a stream and so on',
  readAudit: 'List what operators did',
}

/** Groups of routes by the part of the path that names them, in the order in which documents show them. */
const GROUPS: readonly (readonly [path: RegExp, group: string])[] = [
  [/^\/v1\/email/, 'Sending'],
  [/^\/v1\/broadcasts/, 'Broadcasts'],
  [/^\/v1\/messages/, 'Messages'],
  [/^\/v1\/inbound/, 'Received messages'],
  [/\/events$/, 'Events'],
  [/^\/v1\/webhooks/, 'Webhooks'],
  [/suppressions/, 'Suppressions'],
  [/streams/, 'Streams'],
  [/^\/v1\/domains/, 'Domains'],
  [/^\/v1\/(operator\/)?accounts?$|accounts\/\{accountId\}(\/(approve|pause|resume|close))?$/, 'Accounts'],
  [/tokens/, 'Keys'],
  [/\/servers?(\/|$)/, 'Servers'],
  [/queue/, 'Queue'],
  [/health|readyz|metrics|shards|entities|audit/, 'Installation'],
]

/** The group of routes without one of their own. */
const OTHER = 'This document'

/** Every group, in the order of documents. */
export const GROUP_NAMES: readonly string[] = [...GROUPS.map(([, group]) => group), OTHER]

/** The group of a path. */
export function groupOf(path: string): string {
  return GROUPS.find(([expression]) => expression.test(path))?.[1] ?? OTHER
}
