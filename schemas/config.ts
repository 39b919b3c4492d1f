/** config - the one description of the environment: name, type, default and a sentence for each variable.
 *
 *  src/process/config.ts reads the environment by it, and test/contract.ts compares docs/reference/settings.md with it.
 */

import { FIRST_KEY_SETTINGS, type SettingKind } from './first-key-settings.ts'

export type Setting = SettingKind & {
  name: string
  /** The value if the variable is absent or empty. Null: there is none, and `fallback` describes the effect. */
  default: string | null
  fallback?: string
  meaning: string
}

/** Parts of the service that one process can run; `all` runs them in one process. */
export const ROLES = ['http', 'submission', 'mx', 'actors'] as const
export type Role = (typeof ROLES)[number]

export const DURABILITIES = ['fsync', 'memory', 'replica'] as const
export const APPROVALS = ['automatic', 'manual'] as const
export const BILLINGS = ['off', 'on'] as const
export const HTTP_ENGINES = ['auto', 'uws', 'node'] as const
/** APIs of other providers that the listener serves. */
export const COMPATIBLE_APIS = ['resend', 'postmark', 'mailgun'] as const
export type CompatibleApi = (typeof COMPATIBLE_APIS)[number]
const SWITCHES = ['off', 'on'] as const
export const DNSSEC = ['off', 'trusted'] as const
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** A secret shorter than this can be guessed from one keyed hash. */
export const SECRET_KEY_CHARS_MIN = 32

const port = { kind: 'integer', min: 1, max: 65_535 } as const

/** Every variable of the service, in the order of docs/reference/settings.md. */
export const SETTINGS = [
  {
    name: 'ROLES',
    kind: 'roles',
    default: 'all',
    meaning:
      'Parts that this process runs: `all`, or any of `http`, `submission`, `mx`, `actors`, comma-separated (needs `REDIS_URL`).',
  },
  {
    name: 'DATA_DIR',
    kind: 'path',
    default: './data',
    meaning: 'Directory for the embedded Redis, `first-run.json` and the generated secret.',
  },
  {
    name: 'REDIS_URL',
    kind: 'redis',
    default: null,
    fallback: 'embedded',
    meaning:
      'Redis or Valkey to use: `unix://<DATA_DIR>/redis.sock` for the Redis that `sendwright store` runs, one `redis://`, `rediss://` or `unix://` URL, or several nodes of a Redis Cluster, comma-separated ([Redis Cluster](../operate/cluster.md)).',
  },
  {
    name: 'REDIS_MAXMEMORY',
    kind: 'bytes',
    default: null,
    fallback: 'half of the memory',
    meaning: 'Memory limit of the embedded Redis, such as `2gb`. New mail is refused at 85 % use.',
  },
  {
    name: 'DURABILITY',
    kind: 'choice',
    choices: DURABILITIES,
    default: 'fsync',
    meaning:
      'What a 200 response guarantees: `fsync`: on disk; `memory`: in Redis; `replica`: on disk and on a replica, in a Redis Cluster with two replicas of each primary. On a single Redis, `replica` means `fsync`.',
  },
  {
    name: 'SECRET_KEY',
    kind: 'secret',
    default: null,
    fallback: 'generated in `DATA_DIR`',
    meaning:
      'Secret that signs tokens and keys hashes, at least 32 characters, the same in every process. With a Redis outside `DATA_DIR`, set it or provide the file `secret-key` in `DATA_DIR`.',
  },
  {
    name: 'SECRET_KEY_PREVIOUS',
    kind: 'secret',
    default: null,
    fallback: 'none',
    meaning: 'The `SECRET_KEY` before a rotation, in every process until `sendwright secret rotate` is done.',
  },
  {
    name: 'CONTENT_STORE',
    kind: 'content',
    default: null,
    fallback: '`file`; with a Redis outside `DATA_DIR` `redis`',
    meaning:
      'Where large content is stored: `file` (in `DATA_DIR`, shared by all processes), `s3://bucket/prefix`, or `redis`.',
  },
  {
    name: 'HOT_DAYS',
    kind: 'days',
    min: 4,
    max: 400,
    default: '7',
    meaning:
      'Days after which the message log moves from Redis to the content store, or `off`. Without a content store (`redis`) it stays in Redis.',
  },
  {
    name: 'S3_ENDPOINT',
    kind: 'url',
    default: null,
    fallback: "Amazon's of `S3_REGION`",
    meaning: 'Endpoint of the S3 service; the bucket is named in the path.',
  },
  { name: 'S3_REGION', kind: 'word', default: 'us-east-1', meaning: 'Region of the bucket.' },
  {
    name: 'S3_ACCESS_KEY_ID',
    kind: 'word',
    default: null,
    fallback: 'none',
    meaning: 'Access key ID used to sign S3 requests.',
  },
  {
    name: 'S3_SECRET_ACCESS_KEY',
    kind: 'password',
    default: null,
    fallback: 'none',
    meaning: 'Secret access key of `S3_ACCESS_KEY_ID`; both are required with `s3://`.',
  },
  { name: 'HTTP_HOST', kind: 'host', default: '127.0.0.1', meaning: 'Address on which the API listens.' },
  { name: 'HTTP_PORT', ...port, default: '8080', meaning: 'Port of the API.' },
  {
    name: 'HTTP_PORT_SHARED',
    kind: 'choice',
    choices: SWITCHES,
    default: 'off',
    meaning:
      '`on` lets several processes of one user listen on `HTTP_PORT`, so that one can restart while the others accept ([Many processes](../operate/many-processes.md)).',
  },
  {
    name: 'HTTP_ENGINE',
    kind: 'choice',
    choices: HTTP_ENGINES,
    default: 'auto',
    meaning:
      'HTTP library: `uws` (uWebSockets.js), `node` (`node:http`), or `auto`: `uws` if its native module loads on this machine, otherwise `node`.',
  },
  {
    name: 'OPERATOR_HOST',
    kind: 'host',
    default: '127.0.0.1',
    meaning: 'Address of the operator listener; never put it behind the public proxy.',
  },
  {
    name: 'OPERATOR_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: '8081',
    meaning: 'Port of the operator API, `/healthz`, `/readyz` and `/metrics`; `0` disables it.',
  },
  {
    name: 'BASE_URL',
    kind: 'url',
    default: null,
    fallback: 'from `HTTP_HOST` and `HTTP_PORT`',
    meaning: 'Public URL of the API, used in links.',
  },
  {
    name: 'EDGE_RATE',
    kind: 'integer',
    min: 0,
    max: 1_000_000,
    default: '20',
    meaning:
      'Requests per second allowed for each client (an IPv4 address or an IPv6 /64), per process. `0` disables the limit.',
  },
  {
    name: 'EDGE_BURST',
    kind: 'integer',
    min: 1,
    max: 1_000_000,
    default: '50',
    meaning: 'Burst allowed for each client before `EDGE_RATE` applies.',
  },
  {
    name: 'TRUSTED_PROXIES',
    kind: 'cidrs',
    default: '127.0.0.0/8,::1',
    meaning: 'Networks whose `X-Forwarded-For` header is trusted; `none` trusts no network.',
  },
  {
    name: 'PROXY_PROTOCOL_FROM',
    kind: 'cidrs',
    default: 'none',
    meaning:
      'Networks of proxies in front of the SMTP listeners, which must send a PROXY protocol header, version 2; `none` reads no header.',
  },
  {
    name: 'SERVICE_DOMAIN',
    kind: 'domain',
    default: 'sendwright.localhost',
    meaning: 'Domain of the service. Return paths are below `rp.` in it.',
  },
  {
    name: 'INBOUND_DOMAIN',
    kind: 'domain',
    default: null,
    fallback: '`inbound.` and `SERVICE_DOMAIN`',
    meaning: 'Domain of the addresses of inbound streams.',
  },
  {
    name: 'SMTP_HOSTNAME',
    kind: 'domain',
    default: null,
    fallback: '`SERVICE_DOMAIN`',
    meaning: 'Host name used in EHLO and in the greeting. It needs matching A and PTR records.',
  },
  { name: 'SMTP_HOST', kind: 'host', default: '127.0.0.1', meaning: 'Address of the SMTP listeners.' },
  {
    name: 'SUBMISSION_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: '2587',
    meaning: 'Port of SMTP submission with STARTTLS; `0` disables it.',
  },
  {
    name: 'SUBMISSION_TLS_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: '2465',
    meaning: 'Port of SMTP submission with implicit TLS; `0` disables it.',
  },
  {
    name: 'SUBMISSION_DSN',
    kind: 'choice',
    choices: SWITCHES,
    default: 'off',
    meaning:
      'Whether SMTP submission offers DSN (RFC 3461). Servers with bounce mail switched on then report outcomes to the sender by mail.',
  },
  {
    name: 'MX_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: '2525',
    meaning: 'Port that receives mail, bounces and complaints; `0` disables it.',
  },
  {
    name: 'TLS_CERT',
    kind: 'path',
    default: null,
    fallback: 'self-signed in `DATA_DIR`',
    meaning: 'Certificate chain (PEM) of the SMTP listeners; goes with `TLS_KEY`.',
  },
  {
    name: 'TLS_KEY',
    kind: 'path',
    default: null,
    fallback: 'self-signed in `DATA_DIR`',
    meaning: 'Private key (PEM) of `TLS_CERT`.',
  },
  {
    name: 'RELAY_URL',
    kind: 'relay',
    default: null,
    fallback: 'deliver to MX',
    meaning:
      '`smtp://user:password@host:port` or `smtps://`: sends all mail through this relay, which may have a private address. `smtps://` requires a valid certificate.',
  },
  {
    name: 'RELAY_CONNECTIONS',
    kind: 'integer',
    min: 1,
    max: 1000,
    default: '20',
    meaning: 'Maximum number of connections to the relay, divided among the delivering processes (at least one each).',
  },
  {
    name: 'SITE_LIMITS',
    kind: 'path',
    default: null,
    fallback: 'built in',
    meaning: 'JSON file that adds or replaces limits of receiving sites.',
  },
  {
    name: 'SERVICE_DKIM',
    kind: 'dkim',
    default: null,
    fallback: 'none',
    meaning: '`selector:keyfile`: adds a second DKIM signature by `SERVICE_DOMAIN`.',
  },
  {
    name: 'DNS_SERVERS',
    kind: 'servers',
    default: null,
    fallback: "the system's",
    meaning: 'Name servers for all lookups, as `ip:port`, comma-separated.',
  },
  {
    name: 'DNSSEC',
    kind: 'choice',
    choices: DNSSEC,
    default: 'off',
    meaning:
      'Whether the name servers validate with DNSSEC (`trusted`), so that delivery honours the TLSA records of mail servers (DANE). Use a resolver on this machine: its replies are not protected on the way.',
  },
  {
    name: 'BLOCKLISTS',
    kind: 'blocklists',
    default: 'bl.spamcop.net,psbl.surriel.com,bl.mailspike.net',
    meaning: 'DNS blocklists that are asked about the sending addresses, comma-separated, or `none`.',
  },
  {
    name: 'PRIVATE_NETWORKS_ALLOWED',
    kind: 'cidrs',
    default: null,
    fallback: 'none',
    meaning: 'Private networks that delivery and webhooks can connect to.',
  },
  {
    name: 'WEBHOOK_PORTS',
    kind: 'ports',
    default: null,
    fallback: 'none',
    meaning: 'Ports below 1024, other than 443, that webhooks can connect to, comma-separated.',
  },
  {
    name: 'DELIVERY_IPV6',
    kind: 'choice',
    choices: SWITCHES,
    default: 'off',
    meaning:
      'Whether delivery also connects to IPv6 addresses of MX hosts. Each sending address needs a PTR record and must be listed in SPF.',
  },
  { name: 'DELIVERY_PORT', ...port, default: '25', meaning: 'Destination port of delivery to MX hosts.' },
  {
    name: 'APPROVAL',
    kind: 'choice',
    choices: APPROVALS,
    default: 'automatic',
    meaning:
      'Whether new accounts can send live mail at once (`automatic`) or only after the operator approves them (`manual`).',
  },
  {
    name: 'BILLING',
    kind: 'choice',
    choices: BILLINGS,
    default: 'off',
    meaning: 'Whether sending requires an active subscription.',
  },
  {
    name: 'DOCS',
    kind: 'choice',
    choices: SWITCHES,
    default: 'on',
    meaning: 'Whether the API listener serves this documentation under `/docs`.',
  },
  {
    name: 'COMPATIBLE_APIS',
    kind: 'doors',
    default: 'resend,postmark,mailgun',
    meaning:
      'APIs of other providers that the API listener also serves: any of `resend`, `postmark`, `mailgun`, comma-separated, or `none`.',
  },
  ...FIRST_KEY_SETTINGS,
  {
    name: 'LOG_LEVEL',
    kind: 'choice',
    choices: LOG_LEVELS,
    default: 'info',
    meaning: 'Minimum log level. Output is formatted on a terminal and JSON elsewhere.',
  },
] as const satisfies readonly Setting[]

/** Variables that only the command line reads. */
export const CLIENT_SETTINGS = [
  {
    name: 'SENDWRIGHT_TOKEN',
    kind: 'secret',
    default: null,
    fallback: 'the key in `first-run.json`',
    meaning: 'API key used by the command line: an account key for `domain`, a server key for `send`.',
  },
  {
    name: 'SENDWRIGHT_OPERATOR_TOKEN',
    kind: 'secret',
    default: null,
    fallback: 'the key in `first-run.json`',
    meaning: 'Operator key used by commands that manage the installation.',
  },
] as const satisfies readonly Setting[]

export type SettingName = (typeof SETTINGS)[number]['name']
