/** order - which room may import which, and that no files import each other in a circle. */
import { posix } from 'node:path'
import { codeOf, importsOf, isIn, type Source, targetOf } from './source.ts'

/**
 * The rooms of the house, the highest first. A file imports from its own room and from rooms below it, types included.
 * An unnamed room belongs to the room that contains it.
 */
const FLOORS: readonly (readonly string[])[] = [
  ['bench/main.ts'],
  ['bench/page.ts'],
  ['bench/figures'],
  ['bench/contestants'],
  ['bench/load'],
  ['bench'],
  ['test'],
  ['src/dashboard/page'],
  ['src/dashboard/page/desk', 'src/dashboard/page/door', 'src/dashboard/page/frame'],
  ['src/dashboard/page/pages'],
  ['src/dashboard/page/parts'],
  ['src/dashboard/page/browser'],
  ['src/dashboard/page/api'],
  ['src/cli'],
  ['src/cli/console'],
  ['src/main.ts'],
  ['src/service'],
  ['src/reception'],
  ['src/doors'],
  ['src/doors/resend', 'src/doors/postmark', 'src/doors/mailgun'],
  ['src/doors/common'],
  ['src/dashboard'],
  ['src/dashboard/factor'],
  ['src/routes'],
  ['src/routes/broadcast', 'src/routes/pages'],
  ['src/sending/broadcast'],
  ['src/sending'],
  ['src/health'],
  ['src/checks'],
  ['src/outbound'],
  ['src/outbound/egress'],
  ['src/outbound/thread'],
  ['src/webhooks'],
  ['src/http'],
  ['src/http/engine', 'src/http/shape'],
  ['src/store'],
  ['src/content'],
  ['src/views/operator', 'src/views/dashboard', 'src/views/format'],
  ['src/views/stats'],
  ['src/views/message'],
  ['src/views/inbound', 'src/views/report'],
  ['src/views'],
  ['src/dns'],
  ['src/process'],
  ['src/process/attempts'],
  ['src/actors'],
  ['src/actors/account', 'src/actors/domain', 'src/actors/report'],
  ['src/actors/dashboard'],
  ['src/actors/sealed'],
  ['src/actors/server', 'src/actors/erasure', 'src/actors/retention'],
  ['src/actors/broadcast', 'src/actors/inbound', 'src/actors/bounce-mail'],
  ['src/actors/message'],
  ['src/actors/suppression', 'src/actors/webhook', 'src/actors/bounce-mail/events'],
  ['src/actors/authorization'],
  ['src/state/ring'],
  ['src/state/broadcast'],
  ['src/state/dashboard', 'src/state/message', 'src/state/received', 'src/state/report', 'src/state/webhook'],
  ['src/state/person'],
  ['src/state'],
  ['src/mail/authenticate', 'src/mail/aggregate'],
  ['src/mail/compose', 'src/mail/mime', 'src/mail/report'],
  ['src/mail'],
  ['src/client'],
  ['src/client/shapes'],
  ['schemas'],
  ['cluster/worker'],
  ['cluster/slots'],
  ['cluster/redis'],
  ['cluster/embedded'],
  ['cluster/shard'],
  ['cluster/items', 'cluster/mailbox'],
  ['cluster/facts'],
  ['cluster'],
]

/** Code that runs in browsers. Of all the rest it imports types of the contract. */
const PAGE = 'src/dashboard/page'

/** Rooms below that must not be imported all the same, and the reason. */
const APART: readonly (readonly [room: string, other: string, why: string])[] = [
  ['src/sending', 'src/http', 'SMTP sends as well'],
  ['src/views', 'src/process', 'what is read does not depend on the process'],
  ['src/client', 'schemas', 'a package holds the client alone'],
  ['src/client', 'cluster', 'a package holds the client alone'],
]

/** Rooms that execute decisions. Of the actors they import types and the parts of a lane, and no decisions. */
const ENGINES = ['src/outbound', 'src/webhooks', 'src/reception', 'src/health', 'src/dns', 'src/sending']
const LANE_PARTS =
  /^(?:[A-Z]+(?:_[A-Z]+)*_(?:LANE|TOPIC)|prepare[A-Z]\w*|(?:attempt|bounceMail|check|judge|look|notice|parse)Outcome|reportOutcome|posted)$/

/** The rooms that connect to Redis. All others use the store. */
const REDIS_HANDS = ['cluster/slots', 'cluster/redis', 'cluster/embedded', 'src/store', 'bench', 'test']
/** The parts of the runtime that src/ reaches through src/store only. */
const REDIS_ROOMS = ['cluster/slots', 'cluster/redis', 'cluster/embedded']
const SOCKETS = /^(?:node:)?(?:net|tls|dns|dgram|http|https|http2|fs|child_process|worker_threads|timers)(?:\/|$)/
/** Rooms whose files hold no socket, no file, no process. */
const PURE_ROOMS = /^(?:src\/(?:mail|actors|state)|cluster\/(?:facts|items|mailbox|shard))\//

const RANKS = new Map(FLOORS.flatMap((rooms, rank) => rooms.map((room) => [room, rank])))

/** The room of a file: the longest of the named folders that contains it, or the file itself if it is named. */
function roomOf(path: string): string | null {
  for (let place = path; place !== '.'; place = posix.dirname(place)) if (RANKS.has(place)) return place
  return null
}

/** Imports of rooms that are not below the file's own, and of packages that the room must do without. */
export function wrongImports({ path, text }: Source): string[] {
  const room = roomOf(path)
  if (room === null) return [`${path}: in no known room`]
  return importsOf(text).flatMap((one) => {
    const target = targetOf(path, one)
    if (target === null) return wrongPackage(path, one)
    if (isIn(path, PAGE) && !isIn(target, PAGE) && !(one.isType && isIn(target, 'schemas')))
      return [`${path} imports ${target}: a page takes types of schemas/ and nothing else`]
    const apart = APART.find(([high, low]) => isIn(path, high) && isIn(target, low))
    if (apart !== undefined) return [`${path} imports ${target}: ${apart[2]}`]
    const deciding = one.values.filter((name) => !LANE_PARTS.test(name))
    if (ENGINES.some((engine) => isIn(path, engine)) && isIn(target, 'src/actors') && deciding.length > 0)
      return [`${path} imports ${deciding.join()} of ${target}: an engine takes types and lane behaviours of actors`]
    const other = roomOf(target)
    const isBelow = other !== null && (RANKS.get(other) ?? 0) > (RANKS.get(room) ?? 0)
    return isBelow || other === room ? [] : [`${path} imports ${target}: a room imports only rooms below it`]
  })
}

function wrongPackage(path: string, { from, isType }: { from: string; isType: boolean }): string[] {
  if (PURE_ROOMS.test(path) && !isType && SOCKETS.test(from))
    return [`${path} imports ${from}: it is pure, pass what it needs as an argument`]
  const mayRedis = REDIS_HANDS.some((room) => isIn(path, room))
  return from === 'ioredis' && !mayRedis ? [`${path} imports ioredis: ask the store`] : []
}

/**
 * The parts of the service that use Redis directly, past `src/store`: its client, its connections, or a shard's Redis.
 */
export function pastTheDoor({ path, text }: Source): string[] {
  if (!isIn(path, 'src') || isIn(path, 'src/store')) return []
  const imported = importsOf(text).flatMap((one) => {
    const target = targetOf(path, one) ?? ''
    return REDIS_ROOMS.some((room) => isIn(target, room)) ? [`${path} imports ${target}: ask src/store`] : []
  })
  const asked = /\.(?:nodeOf\(|common\(\)|views\b)/.exec(codeOf(text))
  return asked === null ? imported : [...imported, `${path} has ${asked[0]}: ask src/store`]
}

/** Keys of a message's rows, and the modules that may name them. */
const ROW_KEYS = ['logKey', 'headKey', 'statusKey']
const ROW_MODULES = ['src/state/message/row.ts', 'src/state/segment.ts']

/** Files of the service that name the keys of a message's rows themselves. */
export function pastTheRows({ path, text }: Source): string[] {
  if (!isIn(path, 'src') || ROW_MODULES.includes(path)) return []
  return importsOf(text)
    .filter((one) => targetOf(path, one) === 'src/state/keys.ts')
    .flatMap(({ values }) => values.filter((name) => ROW_KEYS.includes(name)))
    .map((name) => `${path} imports ${name}: read and write rows through src/state/message/row.ts`)
}

/** Circles of files, each as its files; a file that imports itself is one. */
export function circles(all: readonly Source[]): string[] {
  const known = new Set(all.map(({ path }) => path))
  const graph = new Map(
    all.map(({ path, text }) => {
      const targets = importsOf(text).map((one) => targetOf(path, one))
      return [path, targets.filter((target) => target !== null && known.has(target)) as string[]]
    }),
  )
  const reach = new Reach(graph)
  return reach.circles()
}

/** Strongly connected files (Tarjan 1972). */
class Reach {
  private readonly graph: ReadonlyMap<string, readonly string[]>
  private readonly places = new Map<string, number>()
  private readonly lowest = new Map<string, number>()
  private readonly stack: string[] = []
  private readonly found: string[] = []

  constructor(graph: ReadonlyMap<string, readonly string[]>) {
    this.graph = graph
  }

  circles(): string[] {
    for (const path of this.graph.keys()) if (!this.places.has(path)) this.visit(path)
    return this.found
  }

  private visit(path: string): void {
    this.places.set(path, this.places.size)
    this.lowest.set(path, this.places.size - 1)
    this.stack.push(path)
    for (const target of this.graph.get(path) ?? []) {
      if (!this.places.has(target)) this.visit(target)
      if (this.stack.includes(target))
        this.lowest.set(path, Math.min(this.lowest.get(path) ?? 0, this.lowest.get(target) ?? 0))
    }
    if (this.lowest.get(path) !== this.places.get(path)) return
    const circle = this.stack.splice(this.stack.indexOf(path))
    if (circle.length > 1 || this.graph.get(path)?.includes(path)) this.found.push(circle.sort().join(' '))
  }
}
