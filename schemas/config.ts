/** config - the one description of the environment: name, type, default and a sentence for each variable.
 *
 *  src/config.ts reads the environment by it, and test/contract.ts compares the README's tables with it.
 */

/** How a value is read. `fallback` says in words what an absent default means. */
export type SettingKind =
  | { kind: 'choice'; choices: readonly string[] }
  | { kind: 'integer'; min: number; max: number }
  | {
      kind:
        | 'path'
        | 'bytes'
        | 'secret'
        | 'host'
        | 'domain'
        | 'cidrs'
        | 'url'
        | 'roles'
        | 'redis'
        | 'relay'
        | 'servers'
        | 'dkim'
        | 'content'
        | 'word'
        | 'password'
    }

export type Setting = SettingKind & {
  name: string
  /** The value used when the variable is absent or empty; null: there is none, and `fallback` says what then holds. */
  default: string | null
  fallback?: string
  meaning: string
}

/** Parts of the service that one process can run; `all` is every one of them in one process. */
export const ROLES = ['http', 'submission', 'mx', 'actors'] as const
export type Role = (typeof ROLES)[number]

export const DURABILITIES = ['fsync', 'memory', 'replica'] as const
export const APPROVALS = ['automatic', 'manual'] as const
export const BILLINGS = ['off', 'on'] as const
export const HTTP_ENGINES = ['auto', 'uws', 'node'] as const
const SWITCHES = ['off', 'on'] as const
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** A secret shorter than this can be guessed from one keyed hash. */
export const SECRET_KEY_CHARS_MIN = 32

const port = { kind: 'integer', min: 1, max: 65_535 } as const

/** Every variable of the service, in the order of the README. */
export const SETTINGS = [
  {
    name: 'ROLES',
    kind: 'roles',
    default: 'all',
    meaning:
      'What this process runs: `all`, or any of `http`, `submission`, `mx`, `actors`, comma-separated (needs `REDIS_URL`).',
  },
  {
    name: 'DATA_DIR',
    kind: 'path',
    default: './data',
    meaning: 'Files of the embedded Redis, `first-run.json` and the generated secret.',
  },
  {
    name: 'REDIS_URL',
    kind: 'redis',
    default: null,
    fallback: 'embedded',
    meaning:
      'Redis or Valkey to use: `redis://`, `rediss://` or `unix://` of one server; or some nodes of a Redis Cluster, comma-separated ([Redis Cluster](../operate/cluster.md)).',
  },
  {
    name: 'REDIS_MAXMEMORY',
    kind: 'bytes',
    default: null,
    fallback: 'half of the memory',
    meaning: 'Memory that the embedded Redis may use, such as `2gb`; new mail is refused from 85 % of it.',
  },
  {
    name: 'DURABILITY',
    kind: 'choice',
    choices: DURABILITIES,
    default: 'fsync',
    meaning:
      'What an answer of 200 promises: `fsync` on disk, `memory` in Redis. `replica` on disk and in a replica, in a Redis Cluster with two of each primary; where there is one Redis it is `fsync`.',
  },
  {
    name: 'SECRET_KEY',
    kind: 'secret',
    default: null,
    fallback: 'generated in `DATA_DIR`',
    meaning:
      'Signs tokens and keys the hashes, at least 32 characters, the same in every process; with `REDIS_URL` it, or the file `secret-key` in `DATA_DIR`, must be there.',
  },
  {
    name: 'CONTENT_STORE',
    kind: 'content',
    default: null,
    fallback: '`file`; with `REDIS_URL` `redis`',
    meaning:
      'Where large content lies: `file` (in `DATA_DIR`, which all processes share), `s3://bucket/prefix`, or `redis`.',
  },
  {
    name: 'S3_ENDPOINT',
    kind: 'url',
    default: null,
    fallback: "Amazon's of `S3_REGION`",
    meaning: 'Where the bucket of `CONTENT_STORE` is served; it is named in the path.',
  },
  { name: 'S3_REGION', kind: 'word', default: 'us-east-1', meaning: 'Region of the bucket.' },
  {
    name: 'S3_ACCESS_KEY_ID',
    kind: 'word',
    default: null,
    fallback: 'none',
    meaning: 'Whose key the requests to the bucket are signed with.',
  },
  {
    name: 'S3_SECRET_ACCESS_KEY',
    kind: 'password',
    default: null,
    fallback: 'none',
    meaning: 'That key; required with `s3://` like its id.',
  },
  { name: 'HTTP_HOST', kind: 'host', default: '127.0.0.1', meaning: 'Address on which the API listens.' },
  { name: 'HTTP_PORT', ...port, default: '8080', meaning: 'Port of the API.' },
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
    meaning: 'Port of the operator routes, `/healthz`, `/readyz` and `/metrics`; `0` opens none.',
  },
  {
    name: 'BASE_URL',
    kind: 'url',
    default: null,
    fallback: 'from `HTTP_HOST` and `HTTP_PORT`',
    meaning: 'Public address of the API, as it stands in links.',
  },
  {
    name: 'EDGE_RATE',
    kind: 'integer',
    min: 0,
    max: 1_000_000,
    default: '20',
    meaning:
      'Requests a second that one client (an IPv4 address, or an IPv6 /64) may make, for each process; `0` turns the rate off.',
  },
  {
    name: 'EDGE_BURST',
    kind: 'integer',
    min: 1,
    max: 1_000_000,
    default: '50',
    meaning: 'Requests that a client may make at once before `EDGE_RATE` holds.',
  },
  {
    name: 'TRUSTED_PROXIES',
    kind: 'cidrs',
    default: '127.0.0.0/8,::1',
    meaning: 'Networks whose `X-Forwarded-For` is believed; `none` turns it off.',
  },
  {
    name: 'SERVICE_DOMAIN',
    kind: 'domain',
    default: 'sendwright.localhost',
    meaning: 'Domain of the service: return paths are under `rp.` of it.',
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
    meaning: 'Name in EHLO and in the banner; it should have matching A and PTR records.',
  },
  { name: 'SMTP_HOST', kind: 'host', default: '127.0.0.1', meaning: 'Address of the SMTP listeners.' },
  {
    name: 'SUBMISSION_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: '2587',
    meaning: 'Port of SMTP submission with STARTTLS; `0` opens none.',
  },
  {
    name: 'SUBMISSION_TLS_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: '2465',
    meaning: 'Port of SMTP submission with TLS from the first byte; `0` opens none.',
  },
  {
    name: 'MX_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: '2525',
    meaning: 'Port on which bounces and complaints are received; `0` opens none.',
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
      '`smtp://user:password@host:port` or `smtps://`: all mail goes through this relay, which may be private. `smtps://` demands a certificate that holds.',
  },
  {
    name: 'RELAY_CONNECTIONS',
    kind: 'integer',
    min: 1,
    max: 1000,
    default: '20',
    meaning: 'Connections to the relay at once; the processes that deliver divide them, one at least each.',
  },
  {
    name: 'SITE_LIMITS',
    kind: 'path',
    default: null,
    fallback: 'built in',
    meaning: 'JSON file that replaces or adds limits for each receiving site.',
  },
  {
    name: 'SERVICE_DKIM',
    kind: 'dkim',
    default: null,
    fallback: 'none',
    meaning: '`selector:keyfile`: a second signature, by `SERVICE_DOMAIN`.',
  },
  {
    name: 'DNS_SERVERS',
    kind: 'servers',
    default: null,
    fallback: "the system's",
    meaning: '`ip:port`, comma-separated: the name servers of every look-up.',
  },
  {
    name: 'PRIVATE_NETWORKS_ALLOWED',
    kind: 'cidrs',
    default: null,
    fallback: 'none',
    meaning: 'Networks that delivery and webhooks may reach although they are private.',
  },
  {
    name: 'DELIVERY_IPV6',
    kind: 'choice',
    choices: SWITCHES,
    default: 'off',
    meaning:
      'Whether delivery connects to IPv6 addresses of MX hosts too; each address that mail goes out from needs its name and its place in SPF.',
  },
  { name: 'DELIVERY_PORT', ...port, default: '25', meaning: 'Destination port of delivery to MX hosts.' },
  {
    name: 'APPROVAL',
    kind: 'choice',
    choices: APPROVALS,
    default: 'automatic',
    meaning:
      'Whether a new account may send live mail at once (`automatic`) or after the operator approved it (`manual`).',
  },
  {
    name: 'BILLING',
    kind: 'choice',
    choices: BILLINGS,
    default: 'off',
    meaning: 'Whether sends need an active subscription.',
  },
  {
    name: 'DOCS',
    kind: 'choice',
    choices: SWITCHES,
    default: 'on',
    meaning: 'Whether the API listener serves the documentation of this version under `/docs`.',
  },
  {
    name: 'LOG_LEVEL',
    kind: 'choice',
    choices: LOG_LEVELS,
    default: 'info',
    meaning: 'Least level that is logged; pretty on a terminal, JSON otherwise.',
  },
] as const satisfies readonly Setting[]

/** Variables that only the command line reads. */
export const CLIENT_SETTINGS = [
  {
    name: 'SENDWRIGHT_TOKEN',
    kind: 'secret',
    default: null,
    fallback: 'the key in `first-run.json`',
    meaning: 'API key of `domain` (an account key) and `send` (a server key).',
  },
  {
    name: 'SENDWRIGHT_OPERATOR_TOKEN',
    kind: 'secret',
    default: null,
    fallback: 'the key in `first-run.json`',
    meaning: 'Operator key of every command that is about the installation.',
  },
] as const satisfies readonly Setting[]

export type SettingName = (typeof SETTINGS)[number]['name']
