/** suppression - entries there and back, and which reason is worse. */

import t from 'tap'
import { SUPPRESSION_REASONS } from '../../schemas/suppression.ts'
import {
  isLiftable,
  isWorse,
  packPlace,
  packSuppression,
  parsePlace,
  type Suppression,
  suppressedFacts,
  unpackSuppression,
} from '../../src/state/suppression.ts'

const ID = '0193b2a4-6c00-7017-8000-0123456789ab'
const MESSAGE = '0193b2a4-6c01-7017-bfff-ffffffffffff'
const BARE: Suppression = {
  suppressionId: ID,
  number: 513,
  reason: 'manual',
  messageId: null,
  code: null,
  response: null,
}

t.test('suppression: entries there and back [suppression.entry]', async (t) => {
  const full = { ...BARE, messageId: MESSAGE, code: 550, response: '550 5.1.1 <<rcpt>> unknown' }
  for (const reason of SUPPRESSION_REASONS)
    for (const entry of [BARE, full, { ...full, code: null }, { ...full, messageId: null }])
      t.same(unpackSuppression(packSuppression({ ...entry, reason })), { ...entry, reason })
})

t.test('suppression: a place packed and unpacked, and texts that are none', async (t) => {
  const place = { streamId: ID, hmac: 'abcdefghijklmnopqrstuv' }
  t.same(parsePlace({ id: '1-1', fields: ['s', packPlace(place)] }), place)
  t.equal(parsePlace({ id: '1-1', fields: ['x', 'y'] }), null)
})

t.test('suppression: each reason is worse than those before it [suppression.worse]', async (t) => {
  for (const [index, reason] of SUPPRESSION_REASONS.entries())
    for (const [other, than] of SUPPRESSION_REASONS.entries()) t.equal(isWorse(reason, than), index > other)
})

t.test('suppression: only support lifts a person’s own request [suppression.lift]', async (t) => {
  t.same(SUPPRESSION_REASONS.filter(isLiftable), ['manual', 'hard_bounce'])
})

t.test('suppression: one read for each slice of a list', async (t) => {
  const hmac = (byte: number, rest: string) => Buffer.from([byte, ...Buffer.from(rest)]).toString('base64url')
  const [first, second, third] = [hmac(0x1f, 'a'), hmac(0x10, 'b'), hmac(0xf0, 'c')]
  t.same(suppressedFacts(23, ID, [first, second, third]), [
    { read: 'fields', key: `{s023}:suppressed:${ID}:1`, fields: [first, second] },
    { read: 'fields', key: `{s023}:suppressed:${ID}:f`, fields: [third] },
  ])
})
