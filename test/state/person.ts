/** person - numbers given once, months stamped, rows read back. */

import t from 'tap'
import type { Fact, Facts } from '../../cluster/behaviour.ts'
import { withSum } from '../../cluster/sum.ts'
import { makeAccept } from '../../src/actors/message/accept.ts'
import { firstPersonsKey, personKey } from '../../src/state/keys.ts'
import {
  addressOfRow,
  bucketOfHmac,
  erasedMonthOf,
  FIRST_PERSONS,
  keyOfNumber,
  namingFacts,
  PersonNumbers,
  packPerson,
  personFacts,
  unpackPerson,
  unreadPersons,
} from '../../src/state/person.ts'
import { SEGMENT_BOUNDS } from '../../src/state/segment.ts'
import { acceptedIds, hmacOf, makeItem, makeRecipient, makeTenant, send } from '../support/world/tenant.ts'
import { World } from '../support/world/turn.ts'

t.test('person: the bucket is the first byte of the HMAC', async (t) => {
  for (const byte of [0, 1, 62, 127, 128, 255]) {
    const hmac = Buffer.from([byte, 200, 9]).toString('base64url')
    t.equal(bucketOfHmac(hmac), byte)
  }
})

t.test('person: rows there and back', async (t) => {
  for (const suppressions of [0, 1, 12]) {
    const row = { number: 513, month: '202611', suppressions }
    t.same(unpackPerson(packPerson(row)), row)
  }
  t.equal(packPerson({ number: 513, month: '202611', suppressions: 0 }), withSum('513 202611'))
  t.equal(addressOfRow('ada@example.net'), 'ada@example.net')
  t.equal(addressOfRow('202611 erased-abc@erased.invalid'), 'erased-abc@erased.invalid')
  t.equal(erasedMonthOf('202611 erased-abc@erased.invalid'), '202611')
  t.equal(erasedMonthOf('ada@example.net'), null)
})

const PLACE = { shard: 1, accountId: 'acc' }
const FIRST_KEY = firstPersonsKey(1, 'acc')
const WHOLE_MAX = 256

/** Facts over rows by key. A fact that was not fetched is absent. */
function factsOf(rows: Record<string, Record<string, string>>): Facts {
  const field = (key: string, name: string) => {
    if (rows[key] === undefined) throw new Error(`${key} was not fetched`)
    return rows[key][name] ?? null
  }
  return { field, has: (fact: Fact) => rows[fact.key] !== undefined } as Facts
}

t.test('person: one read for each hash that may hold them, with its count', async (t) => {
  const hmacs = [hmac(5, 'a'), hmac(5, 'b'), hmac(9, 'c')] as const
  t.same(personFacts(PLACE, hmacs), [
    { read: 'fields', key: FIRST_KEY, fields: ['#', ...hmacs], wholeMax: WHOLE_MAX },
    { read: 'fields', key: personKey(1, 'acc', 5), fields: ['#', hmacs[0], hmacs[1]], wholeMax: WHOLE_MAX },
    { read: 'fields', key: personKey(1, 'acc', 9), fields: ['#', hmacs[2]], wholeMax: WHOLE_MAX },
  ])
})

t.test('person: buckets are read for persons that are not among the first, once these are full', async (t) => {
  const [known, other] = [hmac(5, 'a'), hmac(9, 'b')]
  const first = { read: 'fields', key: FIRST_KEY, fields: ['#', known, other], wholeMax: WHOLE_MAX }
  const bucket = { read: 'fields', key: personKey(1, 'acc', 9), fields: ['#', other], wholeMax: WHOLE_MAX }
  const cases: readonly (readonly [count: string | undefined, facts: readonly object[]])[] = [
    [undefined, [first]],
    ['7', [first]],
    [String(FIRST_PERSONS - 2), [first]],
    [String(FIRST_PERSONS - 1), [first, bucket]],
    [String(FIRST_PERSONS), [first, bucket]],
  ]
  for (const [count, facts] of cases) {
    const rows: Record<string, string | undefined> = { '#': count, [known]: '7 202611' }
    const remembered = (_key: string, field: string) => rows[field] ?? (count === undefined ? undefined : null)
    t.same(namingFacts(PLACE, [known, other], remembered), facts, `${count}`)
    if (count === undefined) continue
    const fetched = factsOf({ [FIRST_KEY]: { '#': count, [known]: '7 202611' } })
    t.same(unreadPersons(fetched, PLACE, [known, other]), facts.slice(1), `${count} unread`)
  }
  const all = factsOf({ [FIRST_KEY]: { '#': String(FIRST_PERSONS) }, [personKey(1, 'acc', 9)]: {} })
  t.same(unreadPersons(all, PLACE, [other]), [])
})

t.test('person: new ones get numbers of the first hash, known ones keep theirs', async (t) => {
  const [known, newOne, other] = [hmac(5, 'a'), hmac(5, 'b'), hmac(9, 'c')]
  const persons = new PersonNumbers(factsOf({ [FIRST_KEY]: { '#': '7', [known]: '3 202610' } }), PLACE)
  t.equal(persons.numberOf({ hmac: known, address: 'k@x.org' }, '202611'), 3)
  t.equal(persons.numberOf({ hmac: newOne, address: 'n@x.org' }, '202611'), 8)
  t.equal(persons.numberOf({ hmac: other, address: 'o@x.org' }, '202611'), 9)
  t.equal(persons.numberOf({ hmac: newOne, address: 'N@x.org' }, '202611'), 8)
  const args = [known, withSum('3 202611'), newOne, withSum('8 202611'), '8', withSum('n@x.org')]
  args.push(other, withSum('9 202611'), '9', withSum('o@x.org'))
  t.same(persons.ops(), [{ key: FIRST_KEY, write: 'HSET', args: [...args, '#', '9'] }])
  for (const number of [1, 9, FIRST_PERSONS]) t.equal(keyOfNumber(1, 'acc', number), FIRST_KEY)
})

t.test('person: who is not among the first gets a number of its bucket, above theirs', async (t) => {
  const [known, newOne] = [hmac(5, 'a'), hmac(5, 'b')]
  const [first, bucket] = [{ '#': String(FIRST_PERSONS) }, { '#': '7', [known]: '1285 202610' }]
  const key = personKey(1, 'acc', 5)
  const persons = new PersonNumbers(factsOf({ [FIRST_KEY]: first, [key]: bucket }), PLACE)
  t.equal(persons.numberOf({ hmac: known, address: 'k@x.org' }, '202611'), 1285)
  const number = FIRST_PERSONS + 8 * 256 + 5
  t.equal(persons.numberOf({ hmac: newOne, address: 'n@x.org' }, '202611'), number)
  const args = [known, withSum('1285 202611'), newOne, withSum(`${number} 202611`)]
  args.push(String(number), withSum('n@x.org'), '#', '8')
  t.same(persons.ops(), [{ key, write: 'HSET', args }])
  t.equal(keyOfNumber(1, 'acc', number), key)
  t.equal(keyOfNumber(1, 'acc', FIRST_PERSONS + 256), personKey(1, 'acc', 0))
})

t.test('person: named again in the same or an earlier month nothing is written', async (t) => {
  const facts = factsOf({ [FIRST_KEY]: { '#': '9', [hmac(5, 'a')]: '5 202611' } })
  for (const month of ['202611', '202610']) {
    const persons = new PersonNumbers(facts, PLACE)
    t.equal(persons.numberOf({ hmac: hmac(5, 'a'), address: 'k@x.org' }, month), 5)
    t.same(persons.ops(), [])
  }
})

t.test('person: recipients fill the first hash and continue in their bucket, twice', async (t) => {
  const world = new World(Date.UTC(2026, 10, 20))
  const tenant = makeTenant(world)
  const key = firstPersonsKey(world.shard, tenant.accountId)
  const full = String(FIRST_PERSONS - 10)
  world.keys.set(key, { type: 'hash', fields: new Map([['#', full]]) })
  const recipients = Array.from({ length: 50 }, (_, index) => {
    return { ...makeRecipient(`r${index}@example.net`), hmac: hmac(77, `r${index}`) }
  })
  const from = { ...makeItem().from, hmac: hmac(77, 'sender') }
  const type = makeAccept(SEGMENT_BOUNDS)
  for (let round = 0; round < 2; round += 1)
    t.equal(acceptedIds(send(world, tenant, { messages: [makeItem({ from, recipients })] }, { type })).length, 1)
  const [first, bucket] = [world.hash(key), world.hash(personKey(world.shard, tenant.accountId, 77))]
  t.equal(first.get('#'), String(FIRST_PERSONS))
  t.equal(first.size, 10 * 2 + 1)
  t.equal(bucket.get('#'), '41')
  t.equal(bucket.size, 41 * 2 + 1)
  const numbers = recipients.map((one) => unpackPerson(first.get(one.hmac) ?? bucket.get(one.hmac) ?? '').number)
  t.equal(new Set(numbers).size, 50)
  for (const number of numbers) t.ok(number <= FIRST_PERSONS || number % 256 === 77)
})

function hmac(byte: number, text: string): string {
  return Buffer.from([byte]).toString('base64url').slice(0, 1) + rest(byte, text)
}

/** The second character carries the last two bits of the byte, and four of the text's. */
function rest(byte: number, text: string): string {
  const bytes = Buffer.concat([Buffer.from([byte]), Buffer.from(hmacOf(text))])
  return bytes.toString('base64url').slice(1, 22)
}
