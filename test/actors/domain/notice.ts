/** notice - the recipients of a notice, its contents, and how long it is tried. */

import t from 'tap'
import { addDomain } from '../../../src/actors/domain/add-domain.ts'
import {
  decideNotice,
  type NoticeOutcome,
  noticeDues,
  noticeOutcome,
  prepareNotice,
} from '../../../src/actors/domain/notice.ts'
import { removeDomain } from '../../../src/actors/domain/remove-domain.ts'
import type { DomainState } from '../../../src/state/domain.ts'
import { administratorsKey } from '../../../src/state/keys.ts'
import { ACCOUNT_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000

function begin(addresses: Readonly<Record<string, string>> = { '0': 'ada@acme.example' }) {
  const world = new World(NOW_MS)
  const { accountId } = makeTenant(world)
  const order = { accountId, keyHash: ACCOUNT_KEY }
  const administrators = new Map(Object.entries(addresses))
  const key = administratorsKey(world.shard, accountId)
  if (administrators.size > 0) world.keys.set(key, { type: 'hash', fields: new Map(administrators) })
  const named = { domain: 'mail.acme.example', selector: 'sw1', publicKey: 'p', sealedPrivateKey: 's' }
  const added = world.run(addDomain, { ...order, ...named })
  if (added.kind !== 'added') throw new Error('Domain was not added')
  const { domain } = added
  const dues = noticeDues('warning', domain, { administrators, nowMs: NOW_MS })
  for (const due of dues) world.items.set(`${due.lane} ${due.item}`, { ...due, claims: 0 })
  return { world, key, order, domain, dues }
}

t.test(
  'notice: sent when a warning begins and when a verification ends, and for nothing else [domain.notice]',
  async (t) => {
    const states = {
      unverified: { verified: false, failingSinceMs: null },
      verified: { verified: true, failingSinceMs: null },
      warning: { verified: true, failingSinceMs: NOW_MS },
    } as unknown as Record<string, DomainState>
    const told: Record<string, string> = {}
    for (const [before, one] of Object.entries(states))
      for (const [after, other] of Object.entries(states)) {
        const kind = decideNotice(one, other)
        if (kind !== null) told[`${before} -> ${after}`] = kind
      }
    t.same(told, {
      'verified -> warning': 'warning',
      'warning -> unverified': 'ended',
      'verified -> unverified': 'ended',
    })
  },
)

t.test('notice: one for each administrator, found from its item [domain.notice]', async (t) => {
  const { world, domain, dues } = begin({ '0': 'ada@acme.example', '3': 'bob@acme.example' })
  const jobs = dues.map((due) => world.run(prepareNotice, { lane: due.lane, item: due.item }))
  t.same(
    jobs.map((job) => (job?.kind === 'link' ? null : job?.address)),
    ['ada@acme.example', 'bob@acme.example'],
  )
  t.same(jobs[0], { kind: 'warning', domain, atMs: NOW_MS, address: 'ada@acme.example' })
})

t.test('notice: no administrator, a former administrator, a removed domain [domain.notice]', async (t) => {
  const none = begin({})
  t.match(none.world.run(prepareNotice, { lane: 'notice', item: none.dues[0]!.item }), { address: null })
  const former = begin()
  former.world.keys.delete(former.key)
  t.equal(former.world.run(prepareNotice, { lane: 'notice', item: former.dues[0]!.item }), null)
  const removed = begin()
  removed.world.run(removeDomain, { ...removed.order, domainId: removed.domain.domainId })
  t.match(removed.world.run(prepareNotice, { lane: 'notice', item: removed.dues[0]!.item }), { kind: 'warning' })
})

t.test('notice: retried like mail, for two days at most [delivery.retry]', async (t) => {
  const later: NoticeOutcome = { result: 'deferred', response: '451 4.3.0 later' }
  const { world, dues } = begin()
  const [due] = dues
  let attempts = 0
  for (
    let item = world.items.get(`notice ${due!.item}`);
    item !== undefined;
    item = world.items.get(`notice ${due!.item}`)
  ) {
    world.nowMs = item.atMs
    world.end(noticeOutcome, world.claim(prepareNotice, item)!, later)
    attempts += 1
  }
  t.equal(attempts, 15)
  t.ok(world.nowMs - NOW_MS <= 48 * HOUR_MS)
  for (const outcome of [{ ...later, result: 'delivered' }, { ...later, result: 'bounced' }, null] as const) {
    const again = begin()
    again.world.end(noticeOutcome, again.world.claim(prepareNotice, again.dues[0]!)!, outcome)
    t.equal(again.world.items.has(`notice ${again.dues[0]!.item}`), false)
  }
})
