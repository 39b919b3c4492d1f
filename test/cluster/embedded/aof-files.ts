/** aof-files - manifests as Redis 7 and Redis 8 write them, and such as no Redis has written. */
import t from 'tap'
import { formatManifest, isWholeManifest, parseManifest } from '../../../cluster/embedded/aof-files.ts'

const BASE = 'file appendonly.aof.2.base.rdb seq 2 type b\n'
const INCR = 'file appendonly.aof.3.incr.aof seq 3 type i\n'
const FILES = [
  { name: 'appendonly.aof.2.base.rdb', seq: 2, type: 'b' },
  { name: 'appendonly.aof.3.incr.aof', seq: 3, type: 'i' },
] as const

t.test('aof files: the files that a manifest names', async (t) => {
  const history = 'file appendonly.aof.1.incr.aof seq 1 type h\n'
  t.same(parseManifest(BASE + history + INCR), FILES)
  t.same(parseManifest(formatManifest(FILES)), FILES)
  const withOffsets = INCR.replace('type i', 'type i startoffset 1200 endoffset 2400')
  t.same(parseManifest(BASE + withOffsets), FILES, 'Redis 8')
  t.same(parseManifest(BASE + INCR.replace('type i', 'type i startoffset 1200')), FILES)
  t.same(parseManifest('file "appendonly.aof.3.incr.aof" seq 3 type i\n'), FILES.slice(1))
  t.match(parseManifest('file "with a blank.1.incr.aof" seq 1 type i\n'), [{ name: 'with a blank.1.incr.aof' }])
  t.same(parseManifest('file appen'), [])
})

t.test('aof files: a complete manifest, and the rest of one', async (t) => {
  for (const text of [
    BASE + INCR,
    INCR,
    'file "with a blank.1.incr.aof" seq 1 type i\n',
    `${BASE}${INCR.trimEnd()} startoffset 12\n`,
    formatManifest(FILES),
  ])
    t.ok(isWholeManifest(text), text)
  const whole = BASE + INCR
  for (let bytes = 0; bytes < whole.length; bytes += 1)
    t.notOk(isWholeManifest(whole.slice(0, bytes)), `${bytes} bytes`)
  t.notOk(isWholeManifest(`${whole}\0\0\0`))
  t.notOk(isWholeManifest(`${BASE}no line\n${INCR}`))
})
