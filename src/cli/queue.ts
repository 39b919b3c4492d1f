/** queue - `sendwright queue [show|accounts|retry|hold|release|drop]`: pending mail, and commands to control it. */

import type { Command } from 'commander'
import { QUEUE_ORDER_MAX } from '../../schemas/limits.ts'
import type { Destination, Queue, QueueAccounts, QueuedMessages, QueueOrdered } from '../../schemas/operator/queue.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { withOperatorOptions } from './console/options.ts'
import { type Ended, printJson } from './console/print.ts'
import { formatTable } from './console/table.ts'

/** Destinations of one page, and pages that are printed. */
const PAGE = 100
const PAGES_MAX = 100
/** Orders that affect more than one request may are repeated, this often at most. */
const ROUNDS_MAX = 1000

type QueueOrder = 'retry' | 'hold' | 'release' | 'drop'

/** The result of each order, printed after the number of recipients. */
const DONE: Readonly<Record<QueueOrder, string>> = {
  retry: 'due now',
  hold: 'held, with all that comes later',
  release: 'released',
  drop: 'dropped: they bounce',
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addQueueCommands(program: Command, ended: Ended): void {
  const queue = withOperatorOptions(program.command('queue'))
    .description('pending mail by destination: list, hold, retry and drop')
    .action(async (options) => ended(await listQueue(options)))
  withOperatorOptions(queue.command('show <domain>'))
    .description('queued messages of a destination, and why each waits')
    .option('--limit <n>', 'messages at most, from 1 to 100', '50')
    .action(async (domain, _options, command: Command) => ended(await showQueued(domain, command.optsWithGlobals())))
  withOperatorOptions(queue.command('accounts [domain]'))
    .description('accounts whose mail waits, for all destinations or one')
    .option('--limit <n>', 'accounts at most, from 1 to 100', '50')
    .action(async (domain, _options, command: Command) => ended(await showAccounts(domain, command.optsWithGlobals())))
  const orders: readonly [order: QueueOrder, does: string][] = [
    ['retry', 'attempt queued mail of a destination now'],
    ['hold', 'hold all mail of a destination, new mail too, until it is released'],
    ['release', 'end a hold'],
    ['drop', 'drop queued mail of a destination: its recipients bounce'],
  ]
  for (const [order, does] of orders) {
    withOperatorOptions(queue.command(`${order} <domain>`))
      .description(does)
      .option('--note <text>', 'kept in the audit log')
      // Options that `queue` has too are its own, wherever they are given.
      .action(async (domain, _options, command: Command) =>
        ended(await orderQueue(order, domain, command.optsWithGlobals())),
      )
  }
}

/** Prints pending recipients, the largest destinations first. */
async function listQueue(options: ClientOptions): Promise<number> {
  const client = makeClient(options, 'operator')
  const destinations: Destination[] = []
  let after = ''
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const queue = await client.get<Queue>(`/v1/operator/queue?limit=${PAGE}${after}`)
    destinations.push(...queue.destinations)
    if (queue.next === null) break
    after = `&after=${encodeURIComponent(queue.next)}`
  }
  if (options.json) return printJson({ destinations })
  const rows = destinations.map(({ domain, waiting, deferred, held, oldestAt, lastResponse }) => [
    domain,
    String(waiting),
    String(deferred),
    String(held),
    oldestAt ?? '',
    lastResponse ?? '',
  ])
  console.log(formatTable(['destination', 'waiting', 'deferred', 'held', 'oldest', 'last answer'], rows))
  return 0
}

/** Prints the messages that wait for a destination, those due first. */
async function showQueued(domain: string, options: ClientOptions & { limit: string }): Promise<number> {
  const query = `domain=${encodeURIComponent(domain)}&limit=${encodeURIComponent(options.limit)}`
  const found = await makeClient(options, 'operator').get<QueuedMessages>(`/v1/operator/queue/messages?${query}`)
  if (options.json) return printJson(found)
  const rows = found.messages.map(({ messageId, recipientIndex, why, attempts, dueAt, lastResponse }) => [
    `${messageId} ${recipientIndex}`,
    why,
    String(attempts),
    dueAt,
    lastResponse ?? '',
  ])
  console.log(formatTable(['message, recipient', 'why', 'attempts', 'next attempt', 'last answer'], rows))
  return 0
}

/** Prints the accounts whose mail waits, those with the most first. */
async function showAccounts(domain: string | undefined, options: ClientOptions & { limit: string }): Promise<number> {
  const of = domain === undefined ? '' : `&domain=${encodeURIComponent(domain)}`
  const query = `limit=${encodeURIComponent(options.limit)}${of}`
  const found = await makeClient(options, 'operator').get<QueueAccounts>(`/v1/operator/queue/accounts?${query}`)
  if (options.json) return printJson(found)
  const rows = found.accounts.map(({ accountId, waiting, deferred, scheduled, oldestAt }) => [
    accountId,
    String(waiting),
    String(deferred),
    String(scheduled),
    oldestAt,
  ])
  console.log(formatTable(['account', 'waiting', 'deferred', 'scheduled', 'oldest'], rows))
  if (!found.isComplete) console.log('The queue is longer: only its first 20,000 recipients are counted')
  return 0
}

/** Gives an order about a destination and prints how many recipients it concerned. */
async function orderQueue(
  order: QueueOrder,
  domain: string,
  options: ClientOptions & { note?: string },
): Promise<number> {
  const client = makeClient(options, 'operator')
  const body = { domain, ...(options.note !== undefined && { note: options.note }) }
  let recipients = 0
  let held = false
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const done = await client.post<QueueOrdered>(`/v1/operator/queue/${order}`, body)
    recipients += done.recipients
    held = done.held
    // A second retry of fewer would count recipients that have failed again since the first.
    if (order === 'hold' || order === 'release' || done.recipients < QUEUE_ORDER_MAX) break
  }
  if (options.json) return printJson({ recipients, held })
  const result = order === 'retry' && held ? 'due once the destination is released: it is held' : DONE[order]
  console.log(`${domain}: ${recipients} ${result}`)
  return 0
}
