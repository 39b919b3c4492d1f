/** Claims of dead workers are freed, the first at once, later ones after a wait. Those of living workers stay. */
import { test } from 'tap'
import type { LaneType } from '../../../cluster/behaviour.ts'
import { formatClaim } from '../../../cluster/items/claim.ts'
import { deadClaims, standingClaims } from '../../../cluster/items/dead-claims.ts'
import { LaneRunner } from '../../../cluster/items/lane-runner.ts'

const lane = (prefix: string, claimsStand: boolean): LaneType =>
  ({ prefix, claimsStand, holdMs: 1, room: () => 1 }) as unknown as LaneType
const runner = new LaneRunner([lane('deliver', false), lane('post', true)], { failed: () => undefined })
const world = { worker: 'me', runner, isGone: (worker: string) => worker === 'dead' }

function rowOf(worker: string, name: string, claims = 1): string {
  return formatClaim({ worker, lane: name, attempt: claims, untilMs: 9, claims })
}

test('dead-claims: of the dead, in lanes that let go of them', async (t) => {
  const rows = new Map([
    ['a', rowOf('dead', 'deliver/x')],
    ['b', rowOf('living', 'deliver/x')],
    ['c', rowOf('me', 'deliver/x')],
    ['d', rowOf('', 'deliver/x')],
    ['e', rowOf('dead', 'post/y')],
    ['f', rowOf('dead', 'unknown')],
  ])
  t.same(deadClaims(rows, world), [[{ lane: 'deliver/x', item: 'a', worker: 'dead', afterMs: 0 }]])
})

test('dead-claims: an item that was claimed again and again waits longer each time', async (t) => {
  const waits = [1, 2, 3, 4, 5, 9].map((claims) => {
    return deadClaims(new Map([['a', rowOf('dead', 'deliver/x', claims)]]), world)[0]?.[0]?.afterMs
  })
  t.same(waits, [0, 0, 20_000, 60_000, 300_000, 300_000])
})

test('dead-claims: many are freed by several commands', async (t) => {
  const rows = new Map(Array.from({ length: 1_201 }, (_, n) => [`i${n}`, rowOf('dead', 'deliver/x')]))
  t.same(
    deadClaims(rows, world).map(({ length }) => length),
    [500, 500, 201],
  )
})

test('dead-claims: serial lanes are held by every claim of another worker', async (t) => {
  const serial = new LaneRunner([{ ...lane('post', true), serial: true }, lane('deliver', false)], {
    failed: () => undefined,
  })
  const rows = new Map([
    ['a', rowOf('dead', 'post/x')],
    ['b', rowOf('living', 'post/y')],
    ['c', rowOf('me', 'post/z')],
    ['d', rowOf('', 'post/w')],
    ['e', rowOf('living', 'deliver/x')],
    ['f', rowOf('living', 'post/y', 2)],
  ])
  t.same(
    [...standingClaims(rows, { worker: 'me', runner: serial })],
    [
      ['post/x', [{ item: 'a', attempt: 1, untilMs: 9 }]],
      [
        'post/y',
        [
          { item: 'b', attempt: 1, untilMs: 9 },
          { item: 'f', attempt: 2, untilMs: 9 },
        ],
      ],
    ],
  )
})
