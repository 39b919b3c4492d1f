/** request-id - uuids that rise, whatever the clock does, and contain their time. */
import t from 'tap'
import { newRequestId } from '../../src/http/request-id.ts'
import { msOfRequest } from '../../src/state/request-row.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

t.test('request-id: many of one millisecond, and a clock that goes back [request.id]', async (t) => {
  const startMs = Date.now() + 1_000
  const ids: string[] = []
  for (let n = 0; n < 10_000; n += 1) ids.push(newRequestId(startMs))
  for (let n = 0; n < 10; n += 1) ids.push(newRequestId(startMs - 60_000))
  ids.push(newRequestId(startMs + 5_000))
  t.ok(ids.every((id) => UUID.test(id)))
  t.same(ids, [...new Set(ids)].sort())
  t.equal(msOfRequest(ids[0] as string), startMs)
  t.equal(msOfRequest(ids.at(-1) as string), startMs + 5_000)
  t.ok(msOfRequest(ids[9_999] as string) - startMs < 5, 'a millisecond for each 4,096')
})
