/** person - numbers given once, months stamped, rows read back. */

import t from 'tap'
import { makeAccept } from '../../src/actors/accept.ts'
import { personKey } from '../../src/actors/keyspace.ts'
import {
  addressOfRow,
  bucketOfHmac,
  bucketOfNumber,
  erasedMonthOf,
  PersonNumbers,
  packPerson,
  personFacts,
  unpackPerson,
} from '../../src/actors/person.ts'
import { SEGMENT_BOUNDS } from '../../src/actors/segment.ts'
import { acceptedIds, hmacOf, makeItem, makeRecipient, makeTenant, send } from '../support/tenant.ts'
import { World } from '../support/turn.ts'

t.test('person: the bucket is the first byte of the HMAC', async (t) => {
  for (const byte of [0, 1, 62, 127, 128, 255]) {
    const hmac = Buffer.from([byte, 200, 9]).toString('base64url')
    t.equal(bucketOfHmac(hmac), byte)
  }
  t.equal(bucketOfNumber(7 * 256 + 200), 200)
})

t.test('person: rows there and back', async (t) => {
  for (const suppressions of [0, 1, 12]) {
    const row = { number: 513, month: '202611', suppressions }
    t.same(unpackPerson(packPerson(row)), row)
  }
  t.equal(packPerson({ number: 513, month: '202611', suppressions: 0 }), '513 202611')
  t.equal(addressOfRow('ada@example.net'), 'ada@example.net')
  t.equal(addressOfRow('202611 erased-abc@erased.invalid'), 'erased-abc@erased.invalid')
  t.equal(erasedMonthOf('202611 erased-abc@erased.invalid'), '202611')
  t.equal(erasedMonthOf('ada@example.net'), null)
})

t.test('person: one read for each bucket, with its count', async (t) => {
  const hmacs = [hmac(5, 'a'), hmac(5, 'b'), hmac(9, 'c')]
  t.same(personFacts(1, 'acc', hmacs), [
    { read: 'fields', key: personKey(1, 'acc', 5), fields: ['#', hmacs[0], hmacs[1]] },
    { read: 'fields', key: personKey(1, 'acc', 9), fields: ['#', hmacs[2]] },
  ])
})

t.test('person: new ones get numbers of their bucket, known ones keep theirs', async (t) => {
  const [known, newOne, other] = [hmac(5, 'a'), hmac(5, 'b'), hmac(5, 'c')]
  const rows = new Map([
    ['#', '7'],
    [known, '1285 202610'],
  ])
  const facts = { field: (_key: string, field: string) => rows.get(field) ?? null }
  const persons = new PersonNumbers(facts as never, { shard: 1, accountId: 'acc' })
  t.equal(persons.numberOf({ hmac: known, address: 'k@x.org' }, '202611'), 1285)
  t.equal(persons.numberOf({ hmac: newOne, address: 'n@x.org' }, '202611'), 8 * 256 + 5)
  t.equal(persons.numberOf({ hmac: other, address: 'o@x.org' }, '202611'), 9 * 256 + 5)
  t.equal(persons.numberOf({ hmac: newOne, address: 'N@x.org' }, '202611'), 8 * 256 + 5)
  const args = [known, '1285 202611', newOne, '2053 202611', '2053', 'n@x.org', other, '2309 202611', '2309', 'o@x.org']
  t.same(persons.ops(), [{ key: personKey(1, 'acc', 5), write: 'HSET', args: [...args, '#', '9'] }])
})

t.test('person: named again in the same or an earlier month nothing is written', async (t) => {
  const facts = { field: () => '1285 202611' }
  for (const month of ['202611', '202610']) {
    const persons = new PersonNumbers(facts as never, { shard: 1, accountId: 'acc' })
    t.equal(persons.numberOf({ hmac: hmac(5, 'a'), address: 'k@x.org' }, month), 1285)
    t.same(persons.ops(), [])
  }
})

t.test('person: fifty recipients in one bucket, twice', async (t) => {
  const world = new World(Date.UTC(2026, 10, 20))
  const tenant = makeTenant(world)
  const recipients = Array.from({ length: 50 }, (_, index) => {
    return { ...makeRecipient(`r${index}@example.net`), hmac: hmac(77, `r${index}`) }
  })
  const from = { ...makeItem().from, hmac: hmac(77, 'sender') }
  const type = makeAccept(SEGMENT_BOUNDS)
  for (let round = 0; round < 2; round += 1)
    t.equal(acceptedIds(send(world, tenant, { messages: [makeItem({ from, recipients })] }, { type })).length, 1)
  const rows = world.hash(personKey(world.shard, tenant.accountId, 77))
  t.equal(rows.get('#'), '51')
  t.equal(rows.size, 51 * 2 + 1)
  const numbers = new Set(recipients.map((one) => unpackPerson(rows.get(one.hmac) ?? '').number))
  t.equal(numbers.size, 50)
  for (const number of numbers) t.equal(number % 256, 77)
})

function hmac(byte: number, text: string): string {
  return Buffer.from([byte]).toString('base64url').slice(0, 1) + rest(byte, text)
}

/** The second character carries the last two bits of the byte, and four of the text's. */
function rest(byte: number, text: string): string {
  const bytes = Buffer.concat([Buffer.from([byte]), Buffer.from(hmacOf(text))])
  return bytes.toString('base64url').slice(1, 22)
}
