/** compressed - large answers of JSON are gzip for clients that take it, and all others stay as they are. */
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import type { Answer, Reply } from '../../../src/http/respond.ts'
import { compressing } from '../../../src/routes/pages/compressed.ts'

const LARGE = {
  messages: Array.from({ length: 200 }, (_, n) => ({ subject: `Your order é ${n}`, status: 'delivered' })),
}

const ask = (answer: Answer, acceptEncoding: string) => compressing(() => answer)({ acceptEncoding })

t.test('compressed: a large answer is the same JSON in a fraction of the bytes [member.mirror]', async (t) => {
  const answer: Reply = { status: 200, json: LARGE, headers: { 'Cache-Control': 'no-store' } }
  for (const accepted of ['gzip, deflate, br', 'GZIP;q=0.5']) {
    const { bytes, json, contentType, headers, status } = (await ask(answer, accepted)) as Reply
    t.equal(status, 200)
    t.equal(json, undefined)
    t.equal(contentType, 'application/json')
    t.same(headers, { 'Cache-Control': 'no-store', 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' })
    t.same(JSON.parse(gunzipSync(bytes as Uint8Array).toString()), LARGE)
    t.ok((bytes?.length ?? 0) * 5 < JSON.stringify(LARGE).length)
  }
})

t.test(
  'compressed: small answers, refusals, other bodies and other clients are left alone [member.mirror]',
  async (t) => {
    const left = async (answer: Answer, accepted = 'gzip') => t.equal(await ask(answer, accepted), answer)
    for (const accepted of ['', 'identity', 'br', 'gzip;q=0']) await left({ status: 200, json: LARGE }, accepted)
    await left({ status: 400, json: LARGE })
    await left({ status: 200, text: 'x'.repeat(10_000) })
    await left({ status: 204 })
    t.same(await ask({ status: 200, json: { token: 'ak_secret' } }, 'gzip'), {
      status: 200,
      json: { token: 'ak_secret' },
    })
  },
)
