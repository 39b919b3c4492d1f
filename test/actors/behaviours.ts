/** behaviours - the tables hold each name once, and every state begins as nothing. */

import t from 'tap'
import { BEHAVIOURS } from '../../src/actors/behaviours.ts'

t.test('behaviours: names of commands and kinds of entities are unique', async (t) => {
  const names = BEHAVIOURS.commands.map(({ name }) => name)
  const kinds = BEHAVIOURS.entities.map(({ kind }) => kind)
  t.ok(names.length > 6 && kinds.length > 3)
  t.equal(new Set(names).size, names.length)
  t.equal(new Set(kinds).size, kinds.length)
  const timers = Object.keys(BEHAVIOURS.timers)
  for (const name of ['people', 'sweep', 'backlog', 'drop', 'off', 'webhook-sweep']) t.ok(timers.includes(name), name)
})

t.test('behaviours: an event of an entity that does not exist changes nothing', async (t) => {
  const events = { account: { type: 'patched', changes: {} }, domain: { type: 'removed', removedAtMs: 1 } }
  for (const { kind, empty, version, apply } of BEHAVIOURS.entities) {
    t.equal(empty, null)
    t.equal(version, 1)
    if (kind === 'account' || kind === 'domain') t.equal(apply(null, events[kind]), null)
  }
})
