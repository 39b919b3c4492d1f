/** toy-keys - the key names of the toy behaviours, and the shard of an account. */
import { shardTag } from '../../cluster/keyspace.ts'

/** Accounts are called `<shard>a<n>`. */
export function shardOfAccount(account: string): number {
  return Number(account.slice(0, account.indexOf('a')))
}

/** Items are called `<account>.<message id>`. */
export function accountOfItem(item: string): string {
  return item.slice(0, item.indexOf('.'))
}

const tagOf = (account: string): string => shardTag(shardOfAccount(account))

export const logKey = (account: string): string => `${tagOf(account)}:log:${account}`
export const idempotencyKey = (account: string): string => `${tagOf(account)}:idempotency:${account}`
export const personKey = (account: string): string => `${tagOf(account)}:person:${account}`
export const statusKey = (account: string): string => `${tagOf(account)}:status:${account}`
export const capKey = (account: string): string => `${tagOf(account)}:cap:${account}`
export const contentKey = (account: string, id: string): string => `${tagOf(account)}:content:${account}.${id}`
export const postingKey = (account: string, bucket: number): string =>
  `${tagOf(account)}:by-person:${account}:${bucket}`
/** The key that no commit may write. */
export const oddKey = (account: string): string => `${tagOf(account)}:odd`
