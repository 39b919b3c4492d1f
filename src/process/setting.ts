/** setting - reads the text of one variable by its kind (schemas/config.ts). Pure, and throws nothing. */
import { resolve } from 'node:path'
import { domainToASCII } from 'node:url'
import ipaddr from 'ipaddr.js'
import { COMPATIBLE_APIS, ROLES, SECRET_KEY_CHARS_MIN, type Setting } from '../../schemas/config.ts'

/** Units after a number of bytes. */
const BYTES_OF: Readonly<Record<string, number>> = {
  k: 1000,
  kb: 1024,
  m: 1000 ** 2,
  mb: 1024 ** 2,
  g: 1000 ** 3,
  gb: 1024 ** 3,
}
const BYTES_MIN = 64 * 1024 ** 2
const BLOCKLISTS_MAX = 20

/** The value of a variable; null if it is empty. */
export type ParsedSetting = string | number | readonly string[] | null

/** The mistake in a value, in words that follow the variable's name. Never quotes the value. */
export class Mistake {
  readonly sentence: string
  constructor(sentence: string) {
    this.sentence = sentence
  }
}

/**
 * Reads the text of one variable.
 * @returns its value: a text, a number or a list; or a Mistake
 */
export function parseSetting(setting: Setting, text: string): ParsedSetting | Mistake {
  switch (setting.kind) {
    case 'choice':
      return setting.choices.includes(text) ? text : new Mistake(`one of ${setting.choices.join(', ')}`)
    case 'integer':
      return parseInteger(text, setting)
    case 'days':
      return text === 'off' ? text : parseDays(text, setting)
    case 'bytes':
      return parseBytes(text)
    case 'path':
      return resolve(text)
    case 'secret':
      return [...text].length >= SECRET_KEY_CHARS_MIN
        ? text
        : new Mistake(`at least ${SECRET_KEY_CHARS_MIN} characters`)
    case 'host':
      return ipaddr.isValid(text) || isHostName(text) ? text : new Mistake('an IP address or a host name')
    case 'domain':
      return parseDomain(text)
    case 'blocklists':
      return parseBlocklists(text)
    case 'cidrs':
      return parseCidrs(text)
    case 'ports':
      return parsePorts(text)
    case 'url':
      return parseUrl(text)
    case 'roles':
      return parseRoles(text)
    case 'doors':
      return parseDoors(text)
    case 'redis':
      return parseRedisUrls(text)
    case 'relay':
      return parseRelayUrl(text)
    case 'servers':
      return parseDnsServers(text)
    case 'dkim':
      return parseDkim(text)
    case 'content':
      return parseContentStore(text)
    case 'word':
      return /^[\x21-\x7e]{1,256}$/.test(text) ? text : new Mistake('printable ASCII without spaces')
    case 'password':
      return text
  }
}

function parseInteger(text: string, { min, max }: { min: number; max: number }): number | Mistake {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  return value >= min && value <= max ? value : new Mistake(`an integer from ${min} to ${max}`)
}

function parseDays(text: string, bounds: { min: number; max: number }): number | Mistake {
  const days = parseInteger(text, bounds)
  return days instanceof Mistake ? new Mistake(`${days.sentence}, or off`) : days
}

/** As redis takes it: `512mb`, `2gb`; without a letter bytes. */
function parseBytes(text: string): number | Mistake {
  const [, digits, unit = ''] = /^(\d{1,12})(|k|m|g|kb|mb|gb)$/i.exec(text) ?? []
  const bytes = Number(digits) * (BYTES_OF[unit.toLowerCase()] ?? 1)
  return bytes >= BYTES_MIN ? bytes : new Mistake('a number of bytes such as 512mb or 2gb, 64mb at least')
}

function isHostName(text: string): boolean {
  return text.length <= 253 && /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/i.test(text)
}

/** A name with a dot: others would be refused by mail servers, or replaced by the mail library. */
function parseDomain(text: string): string | Mistake {
  const name = domainToASCII(text)
  return isHostName(name) && name.includes('.') && !ipaddr.isValid(name)
    ? name
    : new Mistake('a domain name with a dot')
}

function parseCidrs(text: string): readonly string[] | Mistake {
  if (text === 'none') return []
  const cidrs = splitEntries(text).map((entry) => {
    if (ipaddr.isValid(entry) && !/^\d+(\.\d+){0,2}$/.test(entry)) return `${entry}/${entry.includes(':') ? 128 : 32}`
    return /^[^/]+[.:][^/]*\/\d+$/.test(entry) && ipaddr.isValidCIDR(entry) ? entry : null
  })
  return isFull(cidrs) ? cidrs : new Mistake('networks such as 10.0.0.0/8 or ::1, comma-separated, or none')
}

function parseBlocklists(text: string): readonly string[] | Mistake {
  if (text === 'none') return []
  const lists = splitEntries(text).map((entry) => parseDomain(entry.toLowerCase()))
  const names = lists.filter((list) => typeof list === 'string')
  if (names.length > 0 && names.length <= BLOCKLISTS_MAX && names.length === lists.length) return [...new Set(names)]
  return new Mistake(`up to ${BLOCKLISTS_MAX} names such as bl.spamcop.net, comma-separated, or none`)
}

function parseUrl(text: string): string | Mistake {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username
  return isPlain ? url.href.replace(/\/+$/, '') : new Mistake('an http or https URL without query')
}

function parseDoors(text: string): readonly string[] | Mistake {
  if (text === 'none') return []
  const doors = splitEntries(text)
  const isKnown = doors.every((door) => (COMPATIBLE_APIS as readonly string[]).includes(door))
  if (isKnown && doors.length > 0 && new Set(doors).size === doors.length) return doors
  return new Mistake(`none, or a list of ${COMPATIBLE_APIS.join(', ')}, each at most once`)
}

function parseRoles(text: string): readonly string[] | Mistake {
  const roles = splitEntries(text)
  if (roles.length === 1 && roles[0] === 'all') return roles
  const isKnown = roles.every((role) => (ROLES as readonly string[]).includes(role))
  if (isKnown && new Set(roles).size === roles.length) return roles
  return new Mistake(`all, or a list of ${ROLES.join(', ')}, each at most once`)
}

/** One server, or some nodes of one Redis Cluster: these share scheme, user and password. */
function parseRedisUrls(text: string): readonly string[] | Mistake {
  const urls = splitEntries(text)
  const [first = ''] = urls
  if (urls.length === 1 && (/^unix:\/\/\/./.test(first) || parseHostUrl(first) !== null)) return urls
  const hosts: readonly (URL | null)[] = urls.map(parseHostUrl)
  if (urls.length === 1 || !isWhole(hosts))
    return new Mistake(
      'redis://, rediss:// or unix:///path of one server, or redis:// or rediss:// of nodes of a cluster',
    )
  const isSame = hosts.every(
    ({ protocol, username, password, pathname }) =>
      protocol === hosts[0]?.protocol &&
      username === hosts[0]?.username &&
      password === hosts[0]?.password &&
      /^\/?0?$/.test(pathname),
  )
  return isSame ? urls : new Mistake('nodes of one cluster: with the same scheme, user and password, and no database')
}

function parseHostUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' ? url : null
}

function parseRelayUrl(text: string): string | Mistake {
  const url = URL.canParse(text) ? new URL(text) : null
  const isRelay = url !== null && /^smtps?:$/.test(url.protocol) && url.hostname !== '' && /^\/?$/.test(url.pathname)
  return isRelay && !url.search && !url.hash ? text : new Mistake('smtp:// or smtps:// with a host')
}

function parsePorts(text: string): readonly string[] | Mistake {
  const ports = splitEntries(text)
  const areAll = ports.every((one) => /^\d{1,5}$/.test(one) && Number(one) >= 1 && Number(one) <= 65_535)
  return areAll ? ports : new Mistake('ports such as 80,444')
}

function parseDnsServers(text: string): readonly string[] | Mistake {
  const servers = splitEntries(text).map((entry) => {
    const [, six, four, port = '53'] = /^(?:\[([^\]]+)\]|([\d.]+))(?::(\d{1,5}))?$/.exec(entry) ?? []
    const address = six ?? four ?? entry
    const isAddress = six || !four ? ipaddr.IPv6.isValid(address) : ipaddr.IPv4.isValidFourPartDecimal(address)
    if (!isAddress || Number(port) < 1 || Number(port) > 65_535) return null
    return four ? `${four}:${port}` : `[${address}]:${port}`
  })
  return isFull(servers) ? servers : new Mistake('addresses such as 127.0.0.1:53 or [::1]:53, comma-separated')
}

function parseDkim(text: string): readonly string[] | Mistake {
  const [, selector, keyFile] = /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?):(.+)$/i.exec(text) ?? []
  return selector && keyFile ? [selector, resolve(keyFile)] : new Mistake('selector:keyfile')
}

/** `[kind]`, and of S3 `[kind, bucket, prefix]`. */
function parseContentStore(text: string): readonly string[] | Mistake {
  if (text === 'file' || text === 'redis') return [text]
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]*))?$/.exec(text) ?? []
  return bucket === undefined
    ? new Mistake('file, redis, or s3://bucket/prefix')
    : ['s3', bucket, prefix.replace(/^\/+|\/+$/g, '')]
}

function splitEntries(text: string): string[] {
  return text.split(',').map((entry) => entry.trim())
}

function isWhole(urls: readonly (URL | null)[]): urls is readonly URL[] {
  return urls.every((url) => url !== null)
}

function isFull(entries: readonly (string | null)[]): entries is readonly string[] {
  return entries.every((entry) => entry !== null && entry !== '')
}
