/** Tests of cluster/mailbox-work.ts: the effect of an entry on the shard. */
import { test } from 'tap'
import type { CommandType } from '../../../cluster/behaviour.ts'
import { outcomeWork, parcelWorks } from '../../../cluster/mailbox/arrivals.ts'
import { packCommand, packParcel } from '../../../cluster/mailbox/parcel.ts'
import { packStaged } from '../../../cluster/mailbox/staged.ts'
import { STRICT_WIRE } from '../../support/store/strict-wire.ts'

const SAY = { name: 'say' } as CommandType
const CAME = { commands: new Map([['say', SAY]]), cameAtMs: 5 }
const ENTRY = { id: '5-1', parcelId: 'p', replyTo: 'w' }

test('mailbox-work: the commands of a parcel from a place on; what is none is passed over', async (t) => {
  const body = packParcel(
    'p',
    ['say', 'odd', 'say'].map((name, n) => packCommand({ name, cmdId: `c${n}`, body: n }, 7)),
  )
  const works = parcelWorks({ ...ENTRY, body }, 1, CAME)
  t.match(works, [
    { command: { cmdId: 'c1' }, broken: { message: String }, place: 1, entryId: '5-1' },
    { command: { cmdId: 'c2', body: 2 }, type: SAY, broken: null, place: 2, deadlineMs: 7, late: false },
  ])
  for (const { origin } of works) t.same(origin, { parcelId: 'p', replyTo: 'w', count: 3 })
  const passed: [Uint8Array | null, number, boolean][] = [
    [null, 0, true],
    [body, 3, true],
    [body, 99, true],
    [Buffer.from('odd'), 0, false],
  ]
  for (const [said, done, late] of passed) {
    const [work, ...more] = parcelWorks({ ...ENTRY, body: said }, done, CAME)
    t.same(more, [])
    t.match(work, { late, entryId: '5-1', place: 0, origin: { parcelId: 'p', replyTo: '', count: 1 } })
    t.equal(work?.broken === null, late)
  }
})

test('mailbox-work: a command is unpacked as its behaviour packs it; one that is none of its kind is broken', async (t) => {
  const came = { ...CAME, commands: new Map([['say', { ...SAY, wire: STRICT_WIRE }]]) }
  const bodies = [STRICT_WIRE.pack({ a: 1 }), 'odd']
  const commands = bodies.map((body, n) => packCommand({ name: 'say', cmdId: `c${n}`, body }, 7))
  const works = parcelWorks({ ...ENTRY, body: packParcel('p', commands) }, 0, came)
  t.match(works, [
    { command: { cmdId: 'c0', body: { a: 1 } }, broken: null },
    { command: { cmdId: 'c1', body: 'odd' }, broken: { message: String }, late: false },
  ])
})

test('mailbox-work: an outcome that says nothing of an item is passed over', async (t) => {
  const told: CommandType = { ...SAY, name: 'told' }
  const workOf = (body: object | string | null) =>
    outcomeWork(
      { ...ENTRY, body: typeof body === 'string' ? Buffer.from(body) : body && packStaged({ body }) },
      { typeOf: (lane) => (lane === 'post/a' ? told : undefined), cameAtMs: 5 },
    )
  t.match(workOf({ lane: 'post/a', item: 'i' }), { type: told, item: 'i', late: false, entryId: '5-1', origin: null })
  for (const odd of [null, 'odd', '2\n{x', '4\nnull', '1\n5', { lane: 5, item: 'i' }, { lane: 'gone/a', item: 'i' }])
    t.match(workOf(odd), { late: true, entryId: '5-1' }, JSON.stringify(odd))
})
