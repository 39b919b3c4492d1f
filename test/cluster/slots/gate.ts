/** gate - a commit is reported once replicas have it. */
import t from 'tap'
import type { StoreAnswer } from '../../../cluster/redis/link.ts'
import { ReplicaGate } from '../../../cluster/slots/gate.ts'

/** A link whose WAIT is answered by hand. */
function makeLink() {
  const sent: string[] = []
  const waits: ((answer: StoreAnswer) => void)[] = []
  return {
    sent,
    answer: (value: unknown) => waits.shift()?.({ kind: 'reply', value }),
    lose: () => waits.shift()?.({ kind: 'lost' }),
    refuse: (message: string) => waits.shift()?.({ kind: 'error', message }),
    call(...args: readonly string[]): Promise<StoreAnswer> {
      sent.push(args[0] ?? '')
      if (args[0] === 'PING') return Promise.resolve({ kind: 'reply', value: 'PONG' })
      return new Promise((resolve) => waits.push(resolve))
    },
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

t.test('gate: one pair is in flight; later callers wait for the next', async (t) => {
  const link = makeLink()
  const gate = new ReplicaGate(link, 1)
  const passed: string[] = []
  const ask = (name: string) => void gate.pass().then((isThrough) => passed.push(`${name} ${isThrough}`))
  ask('a')
  ask('b')
  ask('c')
  await turn()
  t.same(link.sent, ['PING', 'WAIT'], 'the ping before it: it moves the connection to the end of what was written')
  link.answer(1)
  await turn()
  t.same(passed, ['a true'])
  t.same(link.sent, ['PING', 'WAIT', 'PING', 'WAIT'], 'both in one')
  link.answer(2)
  await turn()
  t.same(passed, ['a true', 'b true', 'c true'])
})

t.test(
  'gate: a pair that falls short is asked again, for five seconds; after that, and without a connection, the outcome is unknown',
  async (t) => {
    const link = makeLink()
    const gate = new ReplicaGate(link, 1)
    let passed: boolean | null = null
    void gate.pass().then((isThrough) => {
      passed = isThrough
    })
    for (const _ of [1, 2, 3, 4]) {
      await turn()
      link.answer(0)
      await turn()
      t.equal(passed, null)
    }
    const later = gate.pass()
    await turn()
    link.answer(0)
    await turn()
    t.equal(passed, false, 'who asks is told that it is in doubt')
    link.answer(1)
    t.equal(await later, true, 'one that came later has its own five')
    const lost = gate.pass()
    link.lose()
    t.equal(await lost, false)
  },
)

t.test('gate: every caller of a connection that ends is in doubt, and none is asked for on the next one', async (t) => {
  const link = makeLink()
  const gate = new ReplicaGate(link, 1)
  const first = gate.pass()
  const later = gate.pass()
  await turn()
  link.lose()
  t.equal(await first, false)
  t.equal(await later, false, 'it was written before the end as well')
  t.same(link.sent, ['PING', 'WAIT'], 'nothing was sent for it')
  const next = gate.pass()
  await turn()
  link.answer(1)
  t.equal(await next, true, 'a commit that is sent after that is asked for again')
})

t.test('gate: a node that has become a replica answers with an error', async (t) => {
  const link = makeLink()
  const gate = new ReplicaGate(link, 1)
  const passes = [gate.pass(), gate.pass()]
  await turn()
  link.refuse('UNBLOCKED force unblock from blocking operation')
  t.same(await Promise.all(passes), [false, false])
})
