/** places - whose session leaves when a listener is crowded. */
import t from 'tap'
import { Places } from '../../src/reception/places.ts'

/** Fills places with sessions `a1`, `b1` ... of clients `a`, `b` ... */
function enterAll(places: Places<string>, ...sessions: string[]) {
  return sessions.map((session) => places.enter(session, session[0] as string))
}

t.test('places: one client has all of them while no other asks [submission.connections]', async (t) => {
  const places = new Places<string>({ max: 4, crowdedFrom: 3 })
  t.same(
    enterAll(places, 'a1', 'a2', 'a3', 'a4', 'a5').map(({ isPlaced }) => isPlaced),
    [true, true, true, true, false],
  )
  t.equal(places.size, 4)
})

t.test(
  'places: a newcomer takes the oldest of the client with the most [submission.connections] [mx.places]',
  async (t) => {
    const places = new Places<string>({ max: 6, crowdedFrom: 4 })
    enterAll(places, 'b1', 'a1', 'a2', 'a3')
    t.same(enterAll(places, 'c1', 'd1')[0], { isPlaced: true, displaced: 'a1' })
    t.equal(places.size, 4)
    t.same(enterAll(places, 'a4')[0], { isPlaced: true, displaced: null }, 'its own client has as many as any')
  },
)

t.test(
  'places: a client that holds a place keeps it until it is released [submission.connections] [mx.places]',
  async (t) => {
    const places = new Places<string>({ max: 3, crowdedFrom: 2 })
    enterAll(places, 'a1', 'a2', 'a3')
    for (const session of ['a1', 'a2', 'a3']) places.hold(session)
    t.same(places.enter('b1', 'b'), { isPlaced: false, displaced: null })
    places.release('a2')
    t.same(places.enter('b1', 'b'), { isPlaced: true, displaced: 'a2' })
    places.leave('a2')
    places.hold('a2')
    places.release('a2')
    t.equal(places.size, 3, 'a session that is gone changes nothing')
  },
)

t.test('places: a client keeps its only session while there is room, not when all are taken', async (t) => {
  const places = new Places<string>({ max: 3, crowdedFrom: 1 })
  t.same(
    enterAll(places, 'a1', 'b1', 'c1', 'd1').map(({ displaced }) => displaced),
    [null, null, null, 'a1'],
  )
})
