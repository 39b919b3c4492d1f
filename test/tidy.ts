/**
 * tidy - the rules of the house that a machine can check, over the whole tree. `tidy-planted` shows that each finds
 * what it must.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { DOCUMENTS } from './support/documents/blocks.ts'
import { ROOT } from './support/machine/root.ts'
import { circles, pastTheDoor, pastTheRows, wrongImports } from './support/tidy/order.ts'
import { impurities } from './support/tidy/purity.ts'
import {
  fullRooms,
  longFunctions,
  misshapen,
  namedTwice,
  unmirrored,
  unreached,
  wideComments,
  wideProse,
} from './support/tidy/shape.ts'
import { sources } from './support/tidy/source.ts'

const all = sources()

t.test('tidy: the checks look at the whole tree', async (t) => {
  for (const path of [
    'schemas/config.ts',
    'cluster/embedded/embedded.ts',
    'src/cli/main.ts',
    'src/service/launch.mjs',
    'test/tidy.ts',
  ]) {
    t.ok(
      all.some((source) => source.path === path),
      path,
    )
  }
  t.equal(dirname(join(ROOT, 'package.json')), ROOT)
})

t.test('tidy: imports go one way', async (t) => {
  // Tests look everywhere, and quote imports as text.
  const product = all.filter(({ path }) => !path.startsWith('test/'))
  t.same(product.flatMap(wrongImports), [])
})

t.test('tidy: Redis has one door', async (t) => {
  t.same(all.flatMap(pastTheDoor), [])
})

t.test('tidy: one module names the keys of the rows of messages', async (t) => {
  t.same(all.flatMap(pastTheRows), [])
})

t.test('tidy: no files import each other in a circle', async (t) => {
  t.same(circles(all.filter(({ path }) => path !== 'test/tidy-planted.ts')), [])
})

t.test('tidy: no clock, randomness or environment where a decision is made', async (t) => {
  t.same(all.flatMap(impurities), [])
})

t.test('tidy: files have the shape of the house', async (t) => {
  t.same(all.flatMap(misshapen), [])
})

t.test('tidy: functions are short', async (t) => {
  const product = all.filter(({ path }) => !path.startsWith('test/'))
  t.same(product.flatMap(longFunctions), [])
})

t.test('tidy: prose of documents ends at column 100', async (t) => {
  // These are generated.
  const written = DOCUMENTS.filter(
    (path) => !/^docs\/(?:reference\/(?:api|cli|settings)|guides\/webhook-events)\.md$/.test(path),
  )
  const wide = ['CHANGELOG.md', ...written].flatMap((path) =>
    wideProse({ path, text: readFileSync(join(ROOT, path), 'utf8') }),
  )
  t.same(wide, [])
})

t.test('tidy: comments end at column 120', async (t) => {
  const wide = all.flatMap(wideComments)
  t.same(wide, [])
})

t.test('tidy: rooms are not full', async (t) => {
  t.same(fullRooms(all), [])
})

t.test('tidy: a name means one thing', async (t) => {
  t.same(namedTwice(all), [])
})

t.test('tidy: tests stand in folders that name a room', async (t) => {
  t.same(unmirrored(all), [])
})

t.test('tidy: every file of the tests is run, or another one imports it', async (t) => {
  t.same(unreached(all), [])
})
