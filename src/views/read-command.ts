/** read-command - a read in the form of redis-cli, for repeating it by hand */

import type { ViewFact } from '../../cluster/behaviour.ts'

/** The command of a read. Names of keys and fields hold no blanks. */
export function readCommand(fact: ViewFact): string {
  const { key } = fact
  switch (fact.read) {
    case 'fields':
      return `HMGET ${key} ${[...new Set(fact.fields)].join(' ')}`
    case 'hash':
      return `HGETALL ${key}`
    case 'range':
      return `XRANGE ${key} ${fact.from} ${fact.to} COUNT ${fact.count}`
    case 'newest':
      return `XREVRANGE ${key} ${fact.to} ${fact.from} COUNT ${fact.count}`
    case 'last':
      return `XREVRANGE ${key} + - COUNT 1`
    case 'sorted': {
      const [command, from, to] = fact.newest
        ? ['ZREVRANGEBYSCORE', fact.max, fact.min]
        : ['ZRANGEBYSCORE', fact.min, fact.max]
      return `${command} ${key} ${from} ${to} WITHSCORES LIMIT 0 ${fact.count}`
    }
    case 'score':
      return `ZSCORE ${key} ${fact.member}`
    case 'value':
      return `GET ${key}`
  }
}
