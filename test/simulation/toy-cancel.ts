/** toy-cancel - the toy command that ends a message from outside, in any state of its item. */
import type { CommandType, Fact } from '../../cluster/behaviour.ts'
import { statusKey } from './toy-keys.ts'

interface CancelBody {
  readonly account: string
  readonly id: string
}

const TERMINAL: ReadonlySet<string> = new Set(['delivered', 'failed', 'cancelled', 'abandoned'])

/** Whether a message in this state is at its end. */
export function isTerminal(state: string): boolean {
  return TERMINAL.has(state)
}

/** Ends a message that is not final: its item leaves its lane. Refuses with `gone` or `ended`. */
export const cancel: CommandType<CancelBody, { cancelled: boolean } | { refused: string }> = {
  name: 'cancel',
  entities: () => [],
  counters: () => [],
  facts: (body) => [statusFact(body)],
  decide({ account, id }, _states, facts) {
    const packed = facts.field(statusKey(account), id)
    if (packed === null) return { kind: 'refuse', answer: { refused: 'gone' } }
    const status = JSON.parse(packed) as { state: string; lane: string }
    if (isTerminal(status.state)) return { kind: 'refuse', answer: { refused: 'ended' } }
    const ended = JSON.stringify({ ...status, state: 'cancelled' })
    return {
      kind: 'done',
      reply: { cancelled: true },
      ops: [{ key: statusKey(account), write: 'HSET', args: [id, ended] }],
      done: [{ lane: status.lane, item: `${account}.${id}` }],
    }
  },
}

function statusFact({ account, id }: CancelBody): Fact {
  return { read: 'fields', key: statusKey(account), fields: [id] }
}
