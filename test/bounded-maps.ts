/**
 * bounded-maps - every map and set that outlives a call has a bound in entries and in bytes, or holds only our own data
 *
 * The product's syntax trees are searched for maps; one that `map-bounds` does not list fails here. A bound that is a
 * constant is compared with the constant.
 */
import t from 'tap'
import { BOUNDED, type MapBound, OWN } from './support/tidy/map-bounds.ts'
import { livingMapsOf, productSyntax, syntaxOf } from './support/tidy/syntax.ts'

/** Of one map, and of all together, if each were filled at the same time. */
const BYTES_MAX = 96 * 1024 * 1024
const ALL_BYTES_MAX = 1024 * 1024 * 1024
/** They run for one user: a command, a page, a program that uses the client. */
const NOT_SERVED = ['src/cli/', 'src/dashboard/page/', 'src/client/']

const all = productSyntax()
const code = all.map((one) => one.code).join('\n')
const limits = all.find(({ path }) => path === 'schemas/limits.ts')?.code ?? ''
const maps = all
  .filter(({ path }) => !NOT_SERVED.some((start) => path.startsWith(start)))
  .flatMap((one) => livingMapsOf(one, code).map(({ path, name }) => `${path} ${name}`))

const isOwn = (map: string) =>
  Object.keys(OWN).some((start) => map === start || map.startsWith(`${start}/`) || map.startsWith(`${start} `))
const unlisted = (found: readonly string[]) => found.filter((map) => BOUNDED[map] === undefined && !isOwn(map))

t.test('bounded maps: every one is listed', async (t) => {
  t.ok(maps.length > 150)
  t.same(unlisted(maps), [])
})

t.test('bounded maps: no row is left over', async (t) => {
  t.same(
    Object.keys(BOUNDED).filter((map) => !maps.includes(map)),
    [],
  )
  t.same(
    Object.keys(OWN).filter((start) => !maps.some((map) => map.startsWith(start))),
    [],
  )
})

t.test('bounded maps: a new one is seen, a map of one call is not', async (t) => {
  const planted = `
    export class Seen { readonly #ids = new Map(); note(id) { this.#ids.set(id, 1) } }
    export function makeSeen() { const names = new Set(); return { see(name) { names.add(name) } } }
    const tags = new Map(); export function tag(one) { tags.set(one, 1) }
    export function once(list) { const local = new Map(); for (const one of list) local.set(one, 1); return local.size }
    export const FIXED = new Map([['a', 1]])
  `
  const one = syntaxOf({ path: 'src/http/planted.ts', text: planted })
  const found = livingMapsOf(one, one.code).map(({ path, name }) => `${path} ${name}`)
  t.same(unlisted(found), ['src/http/planted.ts ids', 'src/http/planted.ts names', 'src/http/planted.ts tags'])
})

/** Values of the constants that a row names. */
function constantsOf(path: string, { by }: MapBound): number[] {
  const own = all.find((one) => one.path === path)?.code ?? ''
  const names = by.match(/\b[A-Z]+(?:_[A-Z]+)*_MAX\b/g) ?? []
  return names.flatMap((name) => {
    const value = new RegExp(`\\bconst ${name} = ([\\d_e* ]+);`).exec(`${own}\n${limits}`)?.[1]
    const factors = value?.split('*').map((factor) => Number(factor.replaceAll('_', ''))) ?? []
    return factors.length === 0 ? [] : [factors.reduce((product, factor) => product * factor, 1)]
  })
}

t.test('bounded maps: the bounds are those of the source', async (t) => {
  let compared = 0
  for (const [map, bound] of Object.entries(BOUNDED)) {
    if (!/^[A-Z_]+_MAX(?: and [A-Z_]+_MAX)?$/.test(bound.by)) continue
    const values = constantsOf(map.split(' ')[0] ?? '', bound)
    compared += 1
    t.equal(
      values.reduce((sum, value) => sum + value, 0),
      bound.entries,
      `${map}: ${bound.by}`,
    )
  }
  t.ok(compared > 35)
})

t.test('bounded maps: none takes more than 96 MiB', async (t) => {
  const sizes = Object.entries(BOUNDED).map(([map, { entries, entryBytes }]) => ({ map, bytes: entries * entryBytes }))
  t.same(
    sizes.filter(({ bytes }) => bytes > BYTES_MAX),
    [],
  )
  const whole = sizes.reduce((sum, { bytes }) => sum + bytes, 0)
  t.ok(whole < ALL_BYTES_MAX, `${Math.round(whole / 1024 / 1024)} MiB together`)
})
