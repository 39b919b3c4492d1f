/** sts-policy - RFC 8461: files that are policies, and the hosts that they name. */

import t from 'tap'
import { isNamed, readPolicy, readPolicyId } from '../../src/mail/sts-policy.ts'

const read = (file: string) => readPolicy(file, { id: 'i1', nowMs: 1000 })
const FILE = 'version: STSv1\nmode: enforce\nmx: mx.a.test\nmx: *.b.test\nmax_age: 60\n'

t.test('sts-policy: the contents of a file [delivery.sts]', async (t) => {
  t.same(read(FILE), { id: 'i1', mode: 'enforce', mx: ['mx.a.test', '*.b.test'], untilMs: 61_000 })
  t.same(read(FILE.replaceAll('\n', '\r\n')), read(FILE))
  t.match(read('version: STSv1\nmode: none\nmax_age: 5\n'), { mode: 'none', mx: [] })
  t.equal(read(FILE.replace('max_age: 60', 'max_age: 31557600'))?.untilMs, 1000 + 31_557_600_000)
})

t.test('sts-policy: the first 100 hosts count, none of more than 253 characters, in little time', async (t) => {
  const hosts = Array.from({ length: 9000 }, (_, n) => `mx:${n.toString(36)}\n`).join('')
  const before = performance.now()
  const policy = read(`version: STSv1\nmode: enforce\nmax_age: 60\nmx: ${'x'.repeat(1000)}\n${hosts}`)
  t.ok(performance.now() - before < 2_000, `${performance.now() - before} ms`)
  t.same([policy?.mx.length, policy?.mx[0]], [99, '0'])
})

for (const file of [
  '',
  'hello',
  FILE.replace('STSv1', 'STSv2'),
  FILE.replace('enforce', 'sometimes'),
  FILE.replace('max_age: 60\n', ''),
  FILE.replace('60', '-1'),
  FILE.replace('60', '31557601'),
  'version: STSv1\nmode: enforce\nmax_age: 60\n',
])
  t.test(`sts-policy: no policy: ${JSON.stringify(file)}`, async (t) => t.equal(read(file), null))

const HOSTS: [host: string, is: boolean][] = [
  ['mx.a.test', true],
  ['x.mx.a.test', false],
  ['a.test', false],
  ['mx.b.test', true],
  ['a.mx.b.test', false],
  ['b.test', false],
]
for (const [host, is] of HOSTS)
  t.test(`sts-policy: ${host} [delivery.sts]`, async (t) => {
    const policy = read(FILE)
    t.equal(policy !== null && isNamed(policy, host), is)
  })

const RECORDS: [records: string[], id: string | null][] = [
  [['v=STSv1; id=20160831085700Z;'], '20160831085700Z'],
  [['V=stsv1;id=a'], 'a'],
  [[' v=STSv1 ; x=1 ; ID = b ; id=c'], 'b'],
  [['v=spf1 -all', 'v=STSv1; id=a'], 'a'],
  [['v=STSv1; id=a', 'v=STSv1; id=a'], null],
  [['v=STSv1'], null],
  [['v=STSv1;'], null],
  [['v=STSv1; id='], null],
  [['v=STSv2; id=a'], null],
  [['id=a; v=STSv1'], null],
  [[], null],
]
for (const [records, id] of RECORDS)
  t.test(`sts-policy: the id in ${JSON.stringify(records)} [delivery.sts]`, async (t) => {
    t.equal(readPolicyId(records), id)
  })

t.test('sts-policy: of a field that is given twice, the first one counts', async (t) => {
  const policy = read(FILE.replace('max_age', 'mode: none\nMX : MX.a.test\nmax_age'))
  t.match(policy, { mode: 'enforce', mx: ['mx.a.test', '*.b.test'] })
})
