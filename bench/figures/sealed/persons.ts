/**
 * persons - the Redis memory of an address, by the number of addresses of an account
 *
 * The rows are those that acceptance writes, with the reads that it makes, in turns of 1,000 new addresses.
 */

import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Fact, Facts } from '../../../cluster/behaviour.ts'
import { namingFacts, PersonNumbers, unreadPersons } from '../../../src/state/person/person.ts'
import { readInfo, startStore } from '../../store.ts'
import { formatNumber, formatTable } from '../../table.ts'

const ACCOUNT = { shard: 0, accountId: '0193b2a4-6c00-7017-8000-0123456789ab' }
const TURN = 1_000
const MONTH = '202611'
const SIZES = [1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
const NAMES = ['anna', 'jonas', 'mia', 'luca', 'emma', 'paul', 'meyer', 'schmidt', 'weber', 'rossi', 'novak', 'keller']
const HOSTS = ['gmail.com', 'gmx.net', 'mail.example.com', 'outlook.com']

/** Names up to `persons` addresses in one account and prints bytes for each at some sizes. */
export async function benchPersons(persons: number): Promise<void> {
  const store = await startStore()
  try {
    const empty = await readInfo(store.client, 'memory', 'used_memory_dataset')
    const rows: string[][] = [['addresses', 'bytes', 'keys']]
    let named = 0
    for (const size of SIZES.filter((one) => one <= persons)) {
      for (; named < size; named += TURN) await nameTurn(store.client, named)
      const bytes = (await readInfo(store.client, 'memory', 'used_memory_dataset')) - empty
      rows.push([formatNumber(size), formatNumber(bytes / size), formatNumber(await store.client.dbsize())])
    }
    console.log('Addresses of one account, bytes of Redis for each, and its keys\n')
    console.log(formatTable(rows))
  } finally {
    await store.stop()
  }
}

async function nameTurn(client: Redis, from: number): Promise<void> {
  const persons = Array.from({ length: TURN }, (_, at) => {
    const number = from + at
    const name = `${NAMES[number % NAMES.length]}.${NAMES[(number >> 4) % NAMES.length]}${number}`
    return { hmac: randomBytes(16).toString('base64url'), address: `${name}@${HOSTS[number % HOSTS.length]}` }
  })
  const hmacs = persons.map(({ hmac }) => hmac)
  const known = new Map<string, Map<string, string | null>>()
  const facts = {
    field: (key: string, field: string) => known.get(key)?.get(field) ?? null,
    has: (fact: Fact) => known.has(fact.key),
  } as Facts
  await readFields(client, namingFacts(ACCOUNT, hmacs), known)
  await readFields(client, unreadPersons(facts, ACCOUNT, hmacs), known)
  const numbers = new PersonNumbers(facts, ACCOUNT)
  for (const person of persons) numbers.numberOf(person, MONTH)
  const pipeline = client.pipeline()
  for (const { key, args } of numbers.ops()) pipeline.hset(key, ...(args as string[]))
  await pipeline.exec()
}

async function readFields(
  client: Redis,
  facts: readonly Fact[],
  known: Map<string, Map<string, string | null>>,
): Promise<void> {
  const pipeline = client.pipeline()
  for (const fact of facts) if (fact.read === 'fields') pipeline.hmget(fact.key, ...fact.fields)
  const answers = (await pipeline.exec()) ?? []
  for (const [at, fact] of facts.entries()) {
    if (fact.read !== 'fields') continue
    const values = (answers[at]?.[1] ?? []) as (string | null)[]
    known.set(fact.key, new Map(fact.fields.map((field, place) => [field, values[place] ?? null])))
  }
}
