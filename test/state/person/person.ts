/** person - numbers given once, months stamped, rows read back. */

import t from 'tap'
import type { Fact, Facts } from '../../../cluster/behaviour.ts'
import { withSum } from '../../../cluster/sum.ts'
import { makeAccept } from '../../../src/actors/message/accept.ts'
import { bucketOfHmac } from '../../../src/state/hash-fraction.ts'
import { firstPersonsKey, personKey } from '../../../src/state/keys.ts'
import {
  BUCKET_PERSONS,
  type BucketLevel,
  bucketIn,
  bucketKey,
  FIRST_PERSONS,
  keyOfNumber,
  LEVELS,
  nextNumber,
  personKeys,
} from '../../../src/state/person/buckets.ts'
import {
  addressOfRow,
  erasedMonthOf,
  namingFacts,
  PersonNumbers,
  packPerson,
  personFacts,
  personRowIn,
  unpackPerson,
  unreadPersons,
} from '../../../src/state/person/person.ts'
import { SEGMENT_BOUNDS } from '../../../src/state/segment.ts'
import { acceptedIds, hmacOf, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

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
  const deeper = LEVELS.slice(1).flatMap((level) => {
    return hmacs.map((one) => {
      return { read: 'fields', key: bucketKey(level, bucketIn(level, one), PLACE), fields: ['#', one] }
    })
  })
  t.same(personFacts(PLACE, hmacs), [
    { read: 'fields', key: FIRST_KEY, fields: ['#', ...hmacs], wholeMax: WHOLE_MAX },
    { read: 'fields', key: personKey(1, 'acc', '05'), fields: ['#', hmacs[0], hmacs[1]], wholeMax: WHOLE_MAX },
    { read: 'fields', key: personKey(1, 'acc', '09'), fields: ['#', hmacs[2]], wholeMax: WHOLE_MAX },
    ...deeper,
  ])
})

t.test('person: buckets are read for persons that are not among the first, once these are full', async (t) => {
  const [known, other] = [hmac(5, 'a'), hmac(9, 'b')]
  const first = { read: 'fields', key: FIRST_KEY, fields: ['#', known, other], wholeMax: WHOLE_MAX }
  const bucket = { read: 'fields', key: personKey(1, 'acc', '09'), fields: ['#', other], wholeMax: WHOLE_MAX }
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
  const all = factsOf({ [FIRST_KEY]: { '#': String(FIRST_PERSONS) }, [personKey(1, 'acc', '09')]: {} })
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
  const key = personKey(1, 'acc', '05')
  const persons = new PersonNumbers(factsOf({ [FIRST_KEY]: first, [key]: bucket }), PLACE)
  t.equal(persons.numberOf({ hmac: known, address: 'k@x.org' }, '202611'), 1285)
  const number = FIRST_PERSONS + 8 * 256 + 5
  t.equal(persons.numberOf({ hmac: newOne, address: 'n@x.org' }, '202611'), number)
  const args = [known, withSum('1285 202611'), newOne, withSum(`${number} 202611`)]
  args.push(String(number), withSum('n@x.org'), '#', '8')
  t.same(persons.ops(), [{ key, write: 'HSET', args }])
  t.equal(keyOfNumber(1, 'acc', number), key)
  t.equal(keyOfNumber(1, 'acc', FIRST_PERSONS + 256), personKey(1, 'acc', '00'))
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
  const [first, bucket] = [world.hash(key), world.hash(personKey(world.shard, tenant.accountId, '4d'))]
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

/** An account without a store: each turn fetches what it names, and its writes are kept. */
class Account {
  readonly hashes = new Map<string, Map<string, string>>()

  name(hmac: string, address: string): number {
    const facts: Facts = {
      field: (key: string, name: string) => this.hashes.get(key)?.get(name) ?? null,
      has: () => true,
    } as unknown as Facts
    const fetched = new Set(
      [...namingFacts(PLACE, [hmac]), ...unreadPersons({ ...facts, has: () => false } as Facts, PLACE, [hmac])].map(
        ({ key }) => key,
      ),
    )
    const strict = {
      ...facts,
      field(key: string, name: string) {
        if (!fetched.has(key)) throw new Error(`${key} was not fetched`)
        return facts.field(key, name)
      },
    } as Facts
    const persons = new PersonNumbers(strict, PLACE)
    const number = persons.numberOf({ hmac, address }, '202611')
    for (const { key, args } of persons.ops()) {
      const hash = this.hashes.get(key) ?? new Map<string, string>()
      for (let at = 0; at < args.length; at += 2) hash.set(args[at] as string, args[at + 1] as string)
      this.hashes.set(key, hash)
    }
    return number
  }
}

t.test('person: full buckets send new persons to the next level, and every number leads to its row', async (t) => {
  const account = new Account()
  const numbers = new Map<number, string>()
  const persons = 20_000
  for (let at = 0; at < persons; at += 1) {
    const address = `p${at}@example.net`
    const number = account.name(hmacOf(address), address)
    if (numbers.has(number)) t.fail(`${address} has the number of another person`)
    numbers.set(number, address)
  }
  t.equal(numbers.size, persons)
  for (const [number, address] of numbers) {
    const hash = account.hashes.get(keyOfNumber(1, 'acc', number))
    if (addressOfRow(hash?.get(String(number)) ?? '') !== address) t.fail(address)
    if (account.name(hmacOf(address), address) !== number) t.fail(address)
  }
  const sizes = [...account.hashes].filter(([key]) => key !== FIRST_KEY).map(([, { size }]) => size)
  t.equal(Math.max(...sizes), BUCKET_PERSONS * 2 + 1, 'a bucket stays small')
  t.equal(account.hashes.get(FIRST_KEY)?.get('#'), String(FIRST_PERSONS + 1), 'two levels are in use')
})

t.test('person: a bucket of an earlier release is read as it is, and gets no more persons', async (t) => {
  const account = new Account()
  const [known, other] = [hmac(5, 'a'), hmac(5, 'b')]
  account.hashes.set(FIRST_KEY, new Map([['#', String(FIRST_PERSONS)]]))
  const number = FIRST_PERSONS + 400 * 256 + 5
  const rows = new Map([
    ['#', '400'],
    [known, `${number} 202611`],
    [String(number), 'k@example.net'],
  ])
  account.hashes.set(personKey(1, 'acc', '05'), rows)
  t.equal(account.name(known, 'k@example.net'), number)
  t.equal(keyOfNumber(1, 'acc', number), personKey(1, 'acc', '05'))
  const next = account.name(other, 'o@example.net')
  t.equal(keyOfNumber(1, 'acc', next).length, personKey(1, 'acc', '05').length + 1)
  t.equal(rows.size, 3)
  t.equal(account.hashes.get(FIRST_KEY)?.get('#'), String(FIRST_PERSONS + 1))
})

t.test('person: a row is found on every level [erasure.messages]', async (t) => {
  const one = hmac(5, 'a')
  for (const [at, key] of personKeys(PLACE, one).entries()) {
    const rows: Record<string, Record<string, string>> = {}
    for (const { key: name } of personFacts(PLACE, [one])) rows[name] = {}
    rows[key] = { [one]: `${at + 1} 202611` }
    t.equal(personRowIn(factsOf(rows), { ...PLACE, hmac: one })?.number, at + 1, key)
  }
})

t.test('person: a bucket has room again for those who have left it, with new numbers', async (t) => {
  const account = new Account()
  account.hashes.set(FIRST_KEY, new Map([['#', String(FIRST_PERSONS)]]))
  account.hashes.set(personKey(1, 'acc', '05'), new Map([['#', `${BUCKET_PERSONS} 1`]]))
  const [one, other] = [account.name(hmac(5, 'a'), 'a@x.org'), account.name(hmac(5, 'b'), 'b@x.org')]
  t.equal(one, FIRST_PERSONS + (BUCKET_PERSONS + 1) * 256 + 5)
  t.equal(account.hashes.get(personKey(1, 'acc', '05'))?.get('#'), `${BUCKET_PERSONS + 1} 1`)
  t.ok(other >= 2 ** 27)
})

t.test('person: the last level has room for everyone', async (t) => {
  const level = LEVELS.at(-1) as BucketLevel
  t.equal(nextNumber(level, 7, { given: 1_000_000, left: 0 }), level.from + 1_000_001 * level.buckets + 7)
  for (const one of LEVELS) {
    const number = nextNumber(one, 7, { given: 0, left: 0 }) as number
    t.equal(keyOfNumber(1, 'acc', number), bucketKey(one, 7, PLACE))
  }
  for (const [at, one] of LEVELS.slice(0, -1).entries())
    t.equal(nextNumber(one, 7, { given: 1e9, left: 1e9 }), null, `level ${at} ends below the next`)
})
