/** config - the environment read into settings: defaults, one line a mistake, all mistakes at once. */
import { join, resolve } from 'node:path'
import t from 'tap'
import { SETTINGS } from '../../schemas/config.ts'
import { type Config, type Environment, isOwnStore, readClientSettings, readConfig } from '../../src/process/config.ts'
import { ROOT } from '../support/machine/root.ts'

const SECRET = 's'.repeat(32)

function configOf(environment: Environment): Config {
  const result = readConfig(environment)
  if (!result.ok) throw new Error(result.mistakes.join('\n'))
  return result.config
}

function mistakesOf(environment: Environment): string[] {
  const result = readConfig(environment)
  return result.ok ? [] : result.mistakes
}

t.test('config: with no variable set everything has its default', async (t) => {
  t.same(configOf({}), {
    roles: ['http', 'submission', 'mx', 'actors'],
    isWhole: true,
    dataDir: resolve('data'),
    redisUrls: [],
    redisMaxmemory: null,
    durability: 'fsync',
    secretKey: null,
    secretKeyPrevious: null,
    contentStore: null,
    hotDays: 7,
    s3: null,
    httpHost: '127.0.0.1',
    httpPort: 8080,
    operatorHost: '127.0.0.1',
    operatorPort: 8081,
    operatorUrl: 'http://127.0.0.1:8081',
    baseUrl: 'http://127.0.0.1:8080',
    httpPortShared: false,
    httpEngine: 'auto',
    docs: 'on',
    firstKeys: {
      test: { key: null, file: null },
      live: { key: null, file: null },
      account: { key: null, file: null },
      operator: { key: null, file: null },
    },
    compatibleApis: ['resend', 'postmark', 'mailgun'],
    edgeRate: 20,
    edgeBurst: 50,
    proxyProtocolFrom: [],
    trustedProxies: ['127.0.0.0/8', '::1/128'],
    serviceDomain: 'sendwright.localhost',
    inboundDomain: 'inbound.sendwright.localhost',
    smtpHostname: 'sendwright.localhost',
    smtpHost: '127.0.0.1',
    submissionPort: 2587,
    submissionTlsPort: 2465,
    submissionDsn: 'off',
    mxPort: 2525,
    tlsCert: null,
    tlsKey: null,
    relayUrl: null,
    relayConnections: 20,
    siteLimits: null,
    serviceDkim: null,
    dnsServers: [],
    blocklists: ['bl.spamcop.net', 'psbl.surriel.com', 'bl.mailspike.net'],
    privateNetworksAllowed: [],
    dnssec: 'off',
    webhookPorts: [],
    deliveryPort: 25,
    deliveryIpv6: false,
    approval: 'automatic',
    billing: 'off',
    logLevel: 'info',
  })
})

t.test('config: an empty variable is an absent one', async (t) => {
  const empty = Object.fromEntries(SETTINGS.map(({ name }) => [name, '']))
  t.same(configOf(empty), configOf({}))
})

/** name, text, field, value */
const READ: [string, string, keyof Config, unknown][] = [
  ['DATA_DIR', 'some/where', 'dataDir', resolve('some/where')],
  ['CONTENT_STORE', 'file', 'contentStore', { kind: 'file' }],
  ['CONTENT_STORE', 'redis', 'contentStore', { kind: 'redis' }],
  ['HOT_DAYS', 'off', 'hotDays', null],
  ['HOT_DAYS', '30', 'hotDays', 30],
  ['REDIS_MAXMEMORY', '2gb', 'redisMaxmemory', 2 * 1024 ** 3],
  ['REDIS_MAXMEMORY', '100M', 'redisMaxmemory', 100_000_000],
  ['REDIS_MAXMEMORY', '67108864', 'redisMaxmemory', 67_108_864],
  ['HTTP_HOST', '::', 'baseUrl', 'http://127.0.0.1:8080'],
  ['HTTP_HOST', '::1', 'baseUrl', 'http://[::1]:8080'],
  ['HTTP_HOST', 'api.local', 'httpHost', 'api.local'],
  ['HTTP_PORT', '65535', 'httpPort', 65535],
  ['HTTP_PORT', '1', 'baseUrl', 'http://127.0.0.1:1'],
  ['OPERATOR_PORT', '0', 'operatorPort', 0],
  ['BASE_URL', 'https://mail.acme.com/', 'baseUrl', 'https://mail.acme.com'],
  ['BASE_URL', 'https://acme.com/mail/', 'baseUrl', 'https://acme.com/mail'],
  ['HTTP_PORT_SHARED', 'on', 'httpPortShared', true],
  ['HTTP_ENGINE', 'node', 'httpEngine', 'node'],
  ['DOCS', 'off', 'docs', 'off'],
  ['COMPATIBLE_APIS', 'none', 'compatibleApis', []],
  ['COMPATIBLE_APIS', 'mailgun, resend', 'compatibleApis', ['mailgun', 'resend']],
  ['EDGE_RATE', '0', 'edgeRate', 0],
  ['TRUSTED_PROXIES', 'none', 'trustedProxies', []],
  ['PROXY_PROTOCOL_FROM', '10.0.0.0/8', 'proxyProtocolFrom', ['10.0.0.0/8']],
  ['TRUSTED_PROXIES', '10.0.0.1, fd00::/8', 'trustedProxies', ['10.0.0.1/32', 'fd00::/8']],
  ['WEBHOOK_PORTS', '80, 444', 'webhookPorts', [80, 444]],
  ['BLOCKLISTS', 'zen.spamhaus.org, BL.example', 'blocklists', ['zen.spamhaus.org', 'bl.example']],
  ['BLOCKLISTS', 'none', 'blocklists', []],
  ['PRIVATE_NETWORKS_ALLOWED', '127.0.0.0/8', 'privateNetworksAllowed', ['127.0.0.0/8']],
  ['SERVICE_DOMAIN', 'Mail.Acme.COM', 'inboundDomain', 'inbound.mail.acme.com'],
  ['SERVICE_DOMAIN', 'mail.acme.com', 'smtpHostname', 'mail.acme.com'],
  ['SMTP_HOSTNAME', 'out.acme.com', 'smtpHostname', 'out.acme.com'],
  ['RELAY_URL', 'smtps://user:pa%40ss@relay:465', 'relayUrl', 'smtps://user:pa%40ss@relay:465'],
  ['SERVICE_DKIM', 's1:keys/dkim.pem', 'serviceDkim', { selector: 's1', keyFile: resolve('keys/dkim.pem') }],
  [
    'DNS_SERVERS',
    '127.0.0.1:5353,9.9.9.9,::1,[fd00::1]:53',
    'dnsServers',
    ['127.0.0.1:5353', '9.9.9.9:53', '[::1]:53', '[fd00::1]:53'],
  ],
  ['APPROVAL', 'manual', 'approval', 'manual'],
  ['DURABILITY', 'replica', 'durability', 'replica'],
]

t.test('config: a value is read by its kind', async (t) => {
  for (const [name, text, field, value] of READ) t.same(configOf({ [name]: text })[field], value, `${name}=${text}`)
})

t.test('config: with a Redis a process may run some roles', async (t) => {
  const config = configOf({ ROLES: 'http, actors', REDIS_URL: 'redis://10.0.0.1', SECRET_KEY: SECRET })
  t.same([config.roles, config.isWhole, config.secretKey], [['http', 'actors'], false, SECRET])
  const redis = (url: string) => configOf({ REDIS_URL: url, SECRET_KEY: SECRET }).redisUrls
  t.same(redis('unix:///run/redis.sock'), ['unix:///run/redis.sock'])
  t.same(redis('rediss://u:p@a:1'), ['rediss://u:p@a:1'])
  t.same(redis('redis://:p@a:1, redis://:p@b:2/0'), ['redis://:p@a:1', 'redis://:p@b:2/0'], 'nodes of a cluster')
  for (const REDIS_URL of ['redis://a:1,b:2', 'unix:///a,unix:///b', 'redis://a,', 'http://a'])
    t.match(mistakesOf({ REDIS_URL, SECRET_KEY: SECRET }), [/^REDIS_URL: .* of one server, or redis:\/\/ /])
  for (const REDIS_URL of ['redis://a:1,rediss://b:2', 'redis://:p@a,redis://b', 'redis://a/1,redis://b/1'])
    t.match(mistakesOf({ REDIS_URL, SECRET_KEY: SECRET }), [/^REDIS_URL: nodes of one cluster: with the same scheme/])
})

/** name, wrong text, what the mistake must say */
const WRONG: [string, string, RegExp][] = [
  ['CONTENT_STORE', 'files', /^CONTENT_STORE: file, redis, or s3:\/\/bucket\/prefix/],
  ['CONTENT_STORE', 's3://', /^CONTENT_STORE: file, redis, or/],
  ['CONTENT_STORE', 's3://Bucket', /^CONTENT_STORE: file, redis, or/],
  ['CONTENT_STORE', 's3://mail', /^S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY: required with CONTENT_STORE=s3:\/\//],
  ['S3_ENDPOINT', 's3.local', /^S3_ENDPOINT: an http or https URL/],
  ['S3_REGION', 'eu west', /^S3_REGION: printable ASCII without spaces/],
  ['S3_ACCESS_KEY_ID', 'a b', /^S3_ACCESS_KEY_ID: printable ASCII without spaces[^"]*$/],
  [
    'ROLES',
    'http,http',
    /^ROLES: all, or a list of http, submission, mx, actors, each at most once \(is "http,http"\)$/,
  ],
  ...['TEST', 'LIVE', 'ACCOUNT', 'OPERATOR'].map((kind): [string, string, RegExp] => {
    return [`FIRST_RUN_${kind}_KEY`, 'a b', /^FIRST_RUN_\w+_KEY: printable ASCII without spaces[^"]*$/]
  }),
  ['ROLES', 'all,http', /^ROLES: all, or/],
  ['ROLES', 'web', /^ROLES: all, or/],
  ['ROLES', 'http', /^ROLES: .*need REDIS_URL/],
  [
    'COMPATIBLE_APIS',
    'none,resend',
    /^COMPATIBLE_APIS: none, or a list of resend, postmark, mailgun, each at most once/,
  ],
  ['DURABILITY', 'always', /^DURABILITY: one of fsync, memory, replica/],
  ['HTTP_PORT', '0', /^HTTP_PORT: an integer from 1 to 65535 \(is "0"\)$/],
  ['HTTP_PORT', '65536', /^HTTP_PORT: an integer/],
  ['HTTP_PORT', '80a', /^HTTP_PORT: an integer/],
  ['HTTP_PORT', '-1', /^HTTP_PORT: an integer/],
  ['HTTP_PORT', '8081', /^OPERATOR_PORT: the same as HTTP_PORT/],
  ['MX_PORT', '2587', /^MX_PORT: the same as SUBMISSION_PORT/],
  ['HTTP_HOST', 'a b', /^HTTP_HOST: an IP address or a host name/],
  ['BASE_URL', 'ftp://acme.com', /^BASE_URL: an http or https URL/],
  ['BASE_URL', 'https://acme.com/?a=b', /^BASE_URL: an http or https URL/],
  ['PROXY_PROTOCOL_FROM', '::/0', /^PROXY_PROTOCOL_FROM: a network of all addresses/],
  ['TRUSTED_PROXIES', '10.0.0.0/33', /^TRUSTED_PROXIES: networks such as/],
  ['TRUSTED_PROXIES', '10.0.0.0/8,', /^TRUSTED_PROXIES: networks such as/],
  ['TRUSTED_PROXIES', '10', /^TRUSTED_PROXIES: networks such as/],
  ['WEBHOOK_PORTS', '80,https', /^WEBHOOK_PORTS: ports such as/],
  ['BLOCKLISTS', 'spamcop', /^BLOCKLISTS: up to 20 names such as/],
  ['PRIVATE_NETWORKS_ALLOWED', 'intranet', /^PRIVATE_NETWORKS_ALLOWED: networks such as/],
  ['SERVICE_DOMAIN', 'localhost', /^SERVICE_DOMAIN: a domain name with a dot/],
  ['SMTP_HOSTNAME', '10.0.0.1', /^SMTP_HOSTNAME: a domain name with a dot/],
  ['TLS_CERT', 'cert.pem', /^TLS_CERT, TLS_KEY: set both or neither$/],
  ['RELAY_CONNECTIONS', '0', /^RELAY_CONNECTIONS: an integer from 1 to 1000/],
  ['SERVICE_DKIM', 'keyfile', /^SERVICE_DKIM: selector:keyfile/],
  ['DNS_SERVERS', 'dns.acme.com', /^DNS_SERVERS: addresses such as/],
  ['DNS_SERVERS', '127.0.0.1:70000', /^DNS_SERVERS: addresses such as/],
  ['DNS_SERVERS', '127.1', /^DNS_SERVERS: addresses such as/],
  ['SUBMISSION_DSN', 'yes', /^SUBMISSION_DSN: one of/],
  ['DNSSEC', 'on', /^DNSSEC: one of/],
  ['APPROVAL', 'Automatic', /^APPROVAL: one of/],
  ['BILLING', 'yes', /^BILLING: one of/],
  ['DELIVERY_IPV6', 'yes', /^DELIVERY_IPV6: one of/],
  ['LOG_LEVEL', 'verbose', /^LOG_LEVEL: one of/],
  ['OPERATOR_HOST', '-a', /^OPERATOR_HOST: an IP address or a host name/],
  ['OPERATOR_PORT', '65536', /^OPERATOR_PORT: an integer from 0 to 65535/],
  ['SMTP_HOST', 'a_b c', /^SMTP_HOST: an IP address or a host name/],
  ['SUBMISSION_PORT', '1e3', /^SUBMISSION_PORT: an integer from 0 to 65535/],
  ['SUBMISSION_TLS_PORT', '-1', /^SUBMISSION_TLS_PORT: an integer from 0 to 65535/],
  ['MX_PORT', '25.0', /^MX_PORT: an integer from 0 to 65535/],
  ['DELIVERY_PORT', '0', /^DELIVERY_PORT: an integer from 1 to 65535/],
  ['HTTP_PORT_SHARED', 'yes', /^HTTP_PORT_SHARED: one of off, on/],
  ['HTTP_ENGINE', 'express', /^HTTP_ENGINE: one of auto, uws, node/],
  ['DOCS', 'maybe', /^DOCS: one of off, on/],
  ['EDGE_RATE', '-1', /^EDGE_RATE: an integer from 0/],
  ['EDGE_BURST', '0', /^EDGE_BURST: an integer from 1/],
  ['INBOUND_DOMAIN', 'a', /^INBOUND_DOMAIN: a domain name with a dot/],
  ['TLS_KEY', 'key.pem', /^TLS_CERT, TLS_KEY: set both or neither$/],
  ['RELAY_URL', 'https://a', /^RELAY_URL: /],
  ['HOT_DAYS', '3', /^HOT_DAYS: an integer from 4 to 400, or off \(is "3"\)/],
  ['HOT_DAYS', 'on', /^HOT_DAYS: an integer from 4 to 400, or off/],
  ['REDIS_MAXMEMORY', '1tb', /^REDIS_MAXMEMORY: a number of bytes such as 512mb or 2gb/],
  ['REDIS_MAXMEMORY', '63mb', /^REDIS_MAXMEMORY: .* 64mb at least/],
  ['SECRET_KEY', 'short', /^SECRET_KEY: at least 32 characters$/],
  ['SECRET_KEY_PREVIOUS', 'short', /^SECRET_KEY_PREVIOUS: at least 32 characters$/],
]
/**
 * A path, and the key of a bucket, may be any text: what is there is looked at by who opens it. Redis has a test of its
 * own.
 */
const ELSEWHERE = [
  'DATA_DIR',
  'SITE_LIMITS',
  'REDIS_URL',
  'S3_SECRET_ACCESS_KEY',
  ...['TEST', 'LIVE', 'ACCOUNT', 'OPERATOR'].map((kind) => `FIRST_RUN_${kind}_KEY_FILE`),
]

t.test('config: a wrong value of each setting is one mistake that says what is right', async (t) => {
  t.same(
    SETTINGS.map(({ name }) => name as string).filter(
      (name) => !ELSEWHERE.includes(name) && !WRONG.some(([wrong]) => wrong === name),
    ),
    [],
    'every setting has its wrong value here',
  )
  for (const [name, text, mistake] of WRONG) {
    const found = mistakesOf({ [name]: text })
    t.equal(found.length, 1, `${name}=${text}: ${found}`)
    t.match(found[0], mistake)
  }
})

t.test('config: a bucket is named with its place and its key', async (t) => {
  const key = { S3_ACCESS_KEY_ID: 'AKIA', S3_SECRET_ACCESS_KEY: 'secret' }
  const { contentStore, s3 } = configOf({ ...key, CONTENT_STORE: 's3://mail-1/of/us/', S3_REGION: 'eu-north-1' })
  t.same(contentStore, { kind: 's3', bucket: 'mail-1', prefix: 'of/us' })
  const endpoint = 'https://s3.eu-north-1.amazonaws.com'
  t.same(s3, { endpoint, region: 'eu-north-1', accessKeyId: 'AKIA', secretAccessKey: 'secret' })
  t.same(
    configOf({ ...key, CONTENT_STORE: 's3://mail', S3_ENDPOINT: 'http://minio:9000/' }).s3?.endpoint,
    'http://minio:9000',
  )
  t.match(mistakesOf({ CONTENT_STORE: 'file', DURABILITY: 'replica' }), [/^CONTENT_STORE: files of one machine/])
})

t.test('config: the store is our own without REDIS_URL, and on the socket of DATA_DIR', async (t) => {
  const isOwn = (url: string) => isOwnStore(configOf({ DATA_DIR: '/srv/mail', REDIS_URL: url }))
  t.ok(isOwn(''))
  t.ok(isOwn('unix:///srv/mail/redis.sock'))
  for (const url of ['unix:///srv/other/redis.sock', 'redis://127.0.0.1:6379', 'redis://a:7001,redis://b:7001'])
    t.notOk(isOwn(url), url)
})

t.test('config: every mistake is listed at once', async (t) => {
  const found = mistakesOf({ HTTP_PORT: 'x', LOG_LEVEL: 'x', SERVICE_DOMAIN: 'x', SECRET_KEY: 'x' })
  t.same(
    found.map((mistake) => mistake.split(':')[0]),
    ['HTTP_PORT', 'SERVICE_DOMAIN', 'SECRET_KEY', 'LOG_LEVEL'],
  )
})

t.test('config: a mistake never quotes what can be a secret', async (t) => {
  const found = mistakesOf({ SECRET_KEY: 'hunter2', REDIS_URL: 'http://u:hunter2@a', RELAY_URL: 'http://u:hunter2@a' })
  t.equal(found.length, 3)
  t.notMatch(found.join('\n'), /hunter2/)
})

t.test('config: the command line finds its key and address', async (t) => {
  const none = {
    token: null,
    operatorToken: null,
    url: null,
    operatorUrl: null,
    dataDirs: [resolve('data'), join(ROOT, 'data')],
  }
  t.same(readClientSettings({}), none)
  const named = {
    SENDWRIGHT_TOKEN: 'ak_x',
    SENDWRIGHT_OPERATOR_TOKEN: 'ok_x',
    HTTP_PORT: '9000',
    OPERATOR_PORT: '9001',
  }
  t.same(readClientSettings({ ...named, DATA_DIR: 'd' }), {
    token: 'ak_x',
    operatorToken: 'ok_x',
    url: 'http://127.0.0.1:9000',
    operatorUrl: 'http://127.0.0.1:9001',
    dataDirs: [join(process.cwd(), 'd')],
  })
})
