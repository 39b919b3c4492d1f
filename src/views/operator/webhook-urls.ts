/**
 * webhook-urls - the enabled webhooks of the installation with their URLs, as far as a bounded scan reaches
 *
 * Keys: `accounts` of every shard, `account:<id>`, `webhooks:<server>`, `webhook:<id>`
 *
 * Spec operator.health
 */

import { SHARDS } from '../../../cluster/id.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { accountsKey } from '../../state/keys.ts'
import { listenersRef, type Subscriber, type WebhookState, webhookRef } from '../../state/webhook/webhook.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'

/** Entities of one read. */
const PAGE = 200

export interface ScanBounds {
  readonly accountsMax: number
  readonly webhooksMax: number
  /** When the scan ends, by `nowMs`. */
  readonly endsAtMs: number
  readonly nowMs: () => number
}

export interface WebhookUrl {
  readonly webhookId: string
  readonly url: string
}

export interface ScannedWebhooks {
  readonly webhooks: readonly WebhookUrl[]
  /** Whether a bound ended the scan, so that there may be more. */
  readonly isCut: boolean
}

/** Scans shard by shard; null if a store did not answer. */
export async function scanWebhookUrls(read: Reader, bounds: ScanBounds): Promise<ScannedWebhooks | null> {
  const { accountsMax, webhooksMax, endsAtMs, nowMs } = bounds
  const webhooks: WebhookUrl[] = []
  let accountsLeft = accountsMax
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const count = accountsLeft + 1
    const seen = await read(shard, [
      { read: 'sorted', key: accountsKey(shard), min: 0, max: Number.MAX_SAFE_INTEGER, count },
    ])
    if (seen === null) return null
    const accountIds = seen[0].slice(0, accountsLeft).map(([id]) => id)
    for (const page of pagesOf(accountIds)) {
      if (nowMs() > endsAtMs) return { webhooks, isCut: true }
      const isWhole = await readWebhooks(read, { shard, accountIds: page }, { into: webhooks, bounds })
      if (isWhole === null) return null
      if (!isWhole) return { webhooks: webhooks.slice(0, webhooksMax), isCut: true }
    }
    if (seen[0].length > accountsLeft) return { webhooks, isCut: true }
    accountsLeft -= accountIds.length
  }
  return { webhooks, isCut: false }
}

/** Adds the webhooks of some accounts. Returns false if a bound is reached, null if the store did not answer. */
async function readWebhooks(
  read: Reader,
  { shard, accountIds }: { readonly shard: number; readonly accountIds: readonly string[] },
  { into, bounds }: { readonly into: WebhookUrl[]; readonly bounds: ScanBounds },
): Promise<boolean | null> {
  const readAll = async <State>(refs: readonly { kind: string; id: string }[]): Promise<State[] | null> => {
    const seen = await read(
      shard,
      refs.map((ref) => entityFact(shard, ref)),
    )
    return seen?.map((value) => parseState<State>(value)).filter((state) => state !== null) ?? null
  }
  const accounts = await readAll<AccountState>(accountIds.map(accountRef))
  if (accounts === null) return null
  const serverIds = accounts.flatMap(({ webhookServers = [] }) => webhookServers.map(({ serverId }) => serverId))
  for (const servers of pagesOf(serverIds)) {
    const lists = await readAll<readonly Subscriber[]>(servers.map(listenersRef))
    if (lists === null) return null
    const webhookIds = lists.flatMap((list) => list.flatMap(({ enabled, webhookId }) => (enabled ? [webhookId] : [])))
    for (const ids of pagesOf(webhookIds)) {
      if (bounds.nowMs() > bounds.endsAtMs) return false
      const states = await readAll<WebhookState>(ids.map(webhookRef))
      if (states === null) return null
      into.push(...states.map(({ webhookId, url }) => ({ webhookId, url })))
      if (into.length > bounds.webhooksMax) return false
    }
  }
  return true
}

function* pagesOf(ids: readonly string[]): Generator<readonly string[]> {
  for (let start = 0; start < ids.length; start += PAGE) yield ids.slice(start, start + PAGE)
}
