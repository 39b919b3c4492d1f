/** config - the environment, read and checked once into a typed value. The only file that looks at process.env.
 *
 *  Guarantees: every mistake is found in one go, and no mistake quotes a value that can hold a secret.
 */
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type APPROVALS,
  type BILLINGS,
  type CompatibleApi,
  type DNSSEC,
  type DURABILITIES,
  type HTTP_ENGINES,
  type LOG_LEVELS,
  ROLES,
  type Role,
  SETTINGS,
  type Setting,
  type SettingName,
} from '../../schemas/config.ts'
import { Mistake, type ParsedSetting, parseSetting } from './setting.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The settings of the service. Paths are absolute, CIDRs carry their length, domains are lower case. */
export interface Config {
  /** Roles of this process; all four with `ROLES=all`. */
  roles: readonly Role[]
  /** True with `ROLES=all`: this one process is the whole service. */
  isWhole: boolean
  dataDir: string
  /** Empty for the embedded Redis. Otherwise an external server, or some nodes of a Redis Cluster. */
  redisUrls: readonly string[]
  /** Bytes that the embedded Redis may use; null: half of the memory. */
  redisMaxmemory: number | null
  durability: (typeof DURABILITIES)[number]
  /** Null for the secret in `dataDir`, generated with the installation. */
  secretKey: string | null
  /** The one before a rotation. */
  secretKeyPrevious: string | null
  /** Null means files with the embedded Redis, otherwise Redis, unless the installation already uses another store. */
  contentStore: ContentStoreSetting | null
  /** Days after which the log leaves Redis; null: it stays there. */
  hotDays: number | null
  s3: { endpoint: string; region: string; accessKeyId: string; secretAccessKey: string } | null
  httpHost: string
  httpPort: number
  /** Whether several processes may listen on `httpPort`. */
  httpPortShared: boolean
  httpEngine: (typeof HTTP_ENGINES)[number]
  operatorHost: string
  /** 0 for no operator listener. */
  operatorPort: number
  operatorUrl: string
  /** Without a slash at its end. */
  baseUrl: string
  /** Requests a second; 0: no rate. */
  edgeRate: number
  edgeBurst: number
  trustedProxies: readonly string[]
  proxyProtocolFrom: readonly string[]
  serviceDomain: string
  inboundDomain: string
  smtpHostname: string
  smtpHost: string
  /** 0 for no listener; the same for the next two. */
  submissionPort: number
  submissionTlsPort: number
  /** Whether SMTP clients may ask for reports by mail. */
  submissionDsn: 'off' | 'on'
  mxPort: number
  /** Both null for a self-signed one in `dataDir`. */
  tlsCert: string | null
  tlsKey: string | null
  relayUrl: string | null
  relayConnections: number
  siteLimits: string | null
  serviceDkim: { selector: string; keyFile: string } | null
  /** `ip:port`, IPv6 in brackets, as node:dns takes them; empty for those of the system. */
  dnsServers: readonly string[]
  /** Whether the name servers validate, and their word counts. */
  dnssec: (typeof DNSSEC)[number]
  /** DNS blocklists that are asked about the sending addresses. */
  blocklists: readonly string[]
  privateNetworksAllowed: readonly string[]
  /** Ports below 1024 other than 443 that webhooks may connect to. */
  webhookPorts: readonly number[]
  deliveryPort: number
  deliveryIpv6: boolean
  approval: (typeof APPROVALS)[number]
  billing: (typeof BILLINGS)[number]
  docs: 'off' | 'on'
  /** Keys of the first account, or files with them; null: they are generated. */
  firstKeys: Readonly<Record<FirstKeyName, { readonly key: string | null; readonly file: string | null }>>
  /** APIs of other providers that the API listener serves. */
  compatibleApis: readonly CompatibleApi[]
  logLevel: (typeof LOG_LEVELS)[number]
}

/** Keys that a first start makes. */
export type FirstKeyName = 'test' | 'live' | 'account' | 'operator'

export type ContentStoreSetting = { kind: 'file' | 'redis' } | { kind: 's3'; bucket: string; prefix: string }

export type ConfigResult = { ok: true; config: Config } | { ok: false; mistakes: string[] }

/** Settings that the command line needs to reach a service that runs elsewhere or under other settings. */
export interface ClientSettings {
  token: string | null
  operatorToken: string | null
  /** Null if no variable has the address of the API: then `first-run.json` has it. */
  url: string | null
  /** The same of the operator listener. */
  operatorUrl: string | null
  /**
   * Directories that may have `first-run.json`, the nearest first: DATA_DIR, or the current directory, then that of the
   * installation.
   */
  dataDirs: readonly string[]
}

const DATA_DIR_DEFAULT = findSetting('DATA_DIR').default ?? '.'
/** The folder of package.json, seen from the compiled file. */
const INSTALLED_IN = fileURLToPath(new URL('../../..', import.meta.url))
/** Why files do not go with DURABILITY=replica. */
export const FILES_IN_NO_REPLICA =
  'CONTENT_STORE: files of one machine are in no replica; with DURABILITY=replica it is s3://bucket/prefix or redis'

/** Values that may contain a password, so a mistake about them names only the variable. */
const SECRET_KINDS: readonly string[] = ['secret', 'redis', 'relay', 'word', 'password']

/**
 * Reads every setting.
 * @returns the settings, or each mistake as `NAME: what is wrong`
 */
export function readConfig(environment: Environment = process.env): ConfigResult {
  const mistakes: string[] = []
  const read = (name: SettingName): ParsedSetting => {
    const setting = findSetting(name)
    const text = environment[name] || setting.default
    if (text === null) return null
    const value = parseSetting(setting, text)
    if (!(value instanceof Mistake)) return value
    const quoted = SECRET_KINDS.includes(setting.kind) ? '' : ` (is ${JSON.stringify(text)})`
    mistakes.push(`${name}: ${value.sentence}${quoted}`)
    return null
  }
  const config = collect(read)
  mistakes.push(...contradictions(config, environment))
  // They are removed, so that no child of this process inherits them.
  if (environment === process.env) for (const name of FIRST_KEYS) delete process.env[name]
  return mistakes.length === 0 ? { ok: true, config } : { ok: false, mistakes }
}

/**
 * Whether the store is the Redis of DATA_DIR: this process starts it, or `sendwright store` does and REDIS_URL names
 * its socket.
 */
export function isOwnStore({ redisUrls, dataDir }: Pick<Config, 'redisUrls' | 'dataDir'>): boolean {
  const [url] = redisUrls
  return url === undefined || (redisUrls.length === 1 && url === `unix://${join(dataDir, 'redis.sock')}`)
}

/** Whether this is a run of continuous integration, whose systems set CI. */
export function isContinuousIntegration(environment: Environment = process.env): boolean {
  return Boolean(environment.CI) && environment.CI !== 'false'
}

/** How many listening sockets a service manager passes to this process (sd_listen_fds(3)). No child inherits them. */
export function takeInheritedCount(environment: Record<string, string | undefined> = process.env): number {
  const { LISTEN_PID, LISTEN_FDS } = environment
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete environment[name]
  return Number(LISTEN_PID) === process.pid ? Number(LISTEN_FDS) || 0 : 0
}

/** Reads the settings of a client command; a mistaken setting of the service does not hinder it. */
export function readClientSettings(environment: Environment = process.env): ClientSettings {
  const result = readConfig(environment)
  const isOperatorNamed = ['OPERATOR_HOST', 'OPERATOR_PORT'].some((name) => environment[name])
  // A user who names the listener's address reaches it without the proxy, which may not run yet.
  const isListenerNamed = ['HTTP_HOST', 'HTTP_PORT'].some((name) => environment[name])
  const isNamed = isListenerNamed || Boolean(environment.BASE_URL)
  const urlIn = ({ httpHost, httpPort, baseUrl }: Config): string =>
    isListenerNamed ? formatUrl(httpHost, httpPort) : baseUrl
  return {
    token: environment.SENDWRIGHT_TOKEN || null,
    operatorToken: environment.SENDWRIGHT_OPERATOR_TOKEN || null,
    url: isNamed && result.ok ? urlIn(result.config) : null,
    operatorUrl: isOperatorNamed && result.ok ? result.config.operatorUrl : null,
    dataDirs: [
      resolve(environment.DATA_DIR || DATA_DIR_DEFAULT),
      ...(environment.DATA_DIR ? [] : [resolve(INSTALLED_IN, DATA_DIR_DEFAULT)]),
    ],
  }
}

/** The typed whole. After a mistake its fields can hold null; it is then only looked at for further mistakes. */
function collect(read: (name: SettingName) => ParsedSetting): Config {
  const httpHost = read('HTTP_HOST') as string
  const httpPort = read('HTTP_PORT') as number
  const operatorHost = read('OPERATOR_HOST') as string
  const operatorPort = read('OPERATOR_PORT') as number
  const serviceDomain = read('SERVICE_DOMAIN') as string
  const roles = (read('ROLES') ?? []) as readonly (Role | 'all')[]
  const dkim = read('SERVICE_DKIM') as readonly [string, string] | null
  const list = (name: SettingName) => (read(name) ?? []) as readonly string[]
  return {
    roles: roles.includes('all') ? ROLES : (roles as readonly Role[]),
    isWhole: roles.includes('all'),
    dataDir: read('DATA_DIR') as string,
    redisUrls: list('REDIS_URL'),
    redisMaxmemory: read('REDIS_MAXMEMORY') as number | null,
    durability: read('DURABILITY') as Config['durability'],
    secretKey: read('SECRET_KEY') as string | null,
    secretKeyPrevious: read('SECRET_KEY_PREVIOUS') as string | null,
    contentStore: parseContentStore(read('CONTENT_STORE') as readonly string[] | null),
    hotDays: hotDaysOf(read('HOT_DAYS')),
    s3: readS3(read),
    httpHost,
    httpPort,
    httpPortShared: read('HTTP_PORT_SHARED') === 'on',
    httpEngine: read('HTTP_ENGINE') as Config['httpEngine'],
    operatorHost,
    operatorPort,
    operatorUrl: formatUrl(operatorHost, operatorPort),
    baseUrl: (read('BASE_URL') ?? formatUrl(httpHost, httpPort)) as string,
    edgeRate: read('EDGE_RATE') as number,
    edgeBurst: read('EDGE_BURST') as number,
    trustedProxies: list('TRUSTED_PROXIES'),
    proxyProtocolFrom: list('PROXY_PROTOCOL_FROM'),
    serviceDomain,
    inboundDomain: (read('INBOUND_DOMAIN') ?? `inbound.${serviceDomain}`) as string,
    smtpHostname: (read('SMTP_HOSTNAME') ?? serviceDomain) as string,
    smtpHost: read('SMTP_HOST') as string,
    submissionPort: read('SUBMISSION_PORT') as number,
    submissionTlsPort: read('SUBMISSION_TLS_PORT') as number,
    submissionDsn: read('SUBMISSION_DSN') as Config['submissionDsn'],
    mxPort: read('MX_PORT') as number,
    tlsCert: read('TLS_CERT') as string | null,
    tlsKey: read('TLS_KEY') as string | null,
    relayUrl: read('RELAY_URL') as string | null,
    relayConnections: read('RELAY_CONNECTIONS') as number,
    siteLimits: read('SITE_LIMITS') as string | null,
    serviceDkim: dkim && { selector: dkim[0], keyFile: dkim[1] },
    dnsServers: list('DNS_SERVERS'),
    dnssec: read('DNSSEC') as Config['dnssec'],
    blocklists: list('BLOCKLISTS'),
    privateNetworksAllowed: list('PRIVATE_NETWORKS_ALLOWED'),
    webhookPorts: list('WEBHOOK_PORTS').map(Number),
    deliveryPort: read('DELIVERY_PORT') as number,
    deliveryIpv6: read('DELIVERY_IPV6') === 'on',
    approval: read('APPROVAL') as Config['approval'],
    billing: read('BILLING') as Config['billing'],
    docs: read('DOCS') as Config['docs'],
    firstKeys: {
      test: firstKeyOf(read, 'FIRST_RUN_TEST_KEY'),
      live: firstKeyOf(read, 'FIRST_RUN_LIVE_KEY'),
      account: firstKeyOf(read, 'FIRST_RUN_ACCOUNT_KEY'),
      operator: firstKeyOf(read, 'FIRST_RUN_OPERATOR_KEY'),
    },
    compatibleApis: list('COMPATIBLE_APIS') as Config['compatibleApis'],
    logLevel: read('LOG_LEVEL') as Config['logLevel'],
  }
}

function parseContentStore(parsed: readonly string[] | null): ContentStoreSetting | null {
  if (parsed === null) return null
  const [kind, bucket = '', prefix = ''] = parsed
  return kind === 's3' ? { kind, bucket, prefix } : { kind: kind as 'file' | 'redis' }
}

function hotDaysOf(parsed: ParsedSetting): number | null {
  return typeof parsed === 'number' ? parsed : null
}

function readS3(read: (name: SettingName) => ParsedSetting): Config['s3'] {
  const region = read('S3_REGION') as string
  const endpoint = (read('S3_ENDPOINT') ?? `https://s3.${region}.amazonaws.com`) as string
  const accessKeyId = read('S3_ACCESS_KEY_ID') as string | null
  const secretAccessKey = read('S3_SECRET_ACCESS_KEY') as string | null
  return accessKeyId === null || secretAccessKey === null ? null : { endpoint, region, accessKeyId, secretAccessKey }
}

function firstKeyOf(read: (name: SettingName) => ParsedSetting, name: FirstKeySetting) {
  return { key: read(name) as string | null, file: read(`${name}_FILE`) as string | null }
}

const FIRST_KEYS = [
  'FIRST_RUN_TEST_KEY',
  'FIRST_RUN_LIVE_KEY',
  'FIRST_RUN_ACCOUNT_KEY',
  'FIRST_RUN_OPERATOR_KEY',
] as const satisfies readonly SettingName[]
type FirstKeySetting = (typeof FIRST_KEYS)[number]

/** Contradictions between settings. */
function contradictions(config: Config, environment: Environment): string[] {
  const found: string[] = []
  const hasRedis = Boolean(environment.REDIS_URL)
  if (!config.isWhole && config.roles.length > 0 && !hasRedis) {
    found.push('ROLES: values other than "all" need REDIS_URL, because the processes share one Redis')
  }
  if (config.secretKeyPrevious !== null && !environment.SECRET_KEY)
    found.push('SECRET_KEY_PREVIOUS: set SECRET_KEY to the new secret as well')
  if (Boolean(environment.TLS_CERT) !== Boolean(environment.TLS_KEY))
    found.push('TLS_CERT, TLS_KEY: set both or neither')
  for (const name of FIRST_KEYS)
    if (environment[name] && environment[`${name}_FILE`]) found.push(`${name}, ${name}_FILE: set one of them`)
  if (config.proxyProtocolFrom.some((network) => network.endsWith('/0')))
    found.push('PROXY_PROTOCOL_FROM: a network of all addresses lets every client claim any address')
  if (config.contentStore?.kind === 's3' && config.s3 === null)
    found.push('S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY: required with CONTENT_STORE=s3://')
  if (config.contentStore?.kind === 'file' && config.durability === 'replica') found.push(FILES_IN_NO_REPLICA)
  return [...found, ...samePorts(config)]
}

/** The HTTP listener's sockets could share a port without an error, so it is found here. */
function samePorts(config: Config): string[] {
  const listeners: [string, string, number][] = [
    ['HTTP_PORT', config.httpHost, config.httpPort],
    ['OPERATOR_PORT', config.operatorHost, config.operatorPort],
    ['SUBMISSION_PORT', config.smtpHost, config.submissionPort],
    ['SUBMISSION_TLS_PORT', config.smtpHost, config.submissionTlsPort],
    ['MX_PORT', config.smtpHost, config.mxPort],
  ]
  const firstOf = new Map<string, string>()
  const found: string[] = []
  for (const [name, host, port] of listeners) {
    if (!port) continue
    const first = firstOf.get(`${host} ${port}`)
    if (first) found.push(`${name}: the same as ${first} (is "${port}")`)
    else firstOf.set(`${host} ${port}`, name)
  }
  return found
}

function findSetting(name: SettingName): Setting {
  return SETTINGS.find((setting) => setting.name === name) as Setting
}

/** Where a local client finds the listener; one that listens everywhere is reached on loopback. */
function formatUrl(host: string, port: number): string {
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const name = isEverywhere ? '127.0.0.1' : host?.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}
