/** prepare - the size of a broadcast, and its largest message, without building one that could not be sent. */
import t from 'tap'
import { BROADCAST_BODY, type BroadcastBody } from '../../../schemas/broadcast.ts'
import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { compileBody } from '../../../src/http/shape/validate.ts'
import { makeSecrets } from '../../../src/process/secrets.ts'
import { checkBroadcast } from '../../../src/sending/broadcast/check.ts'
import { prepareBroadcast } from '../../../src/sending/broadcast/prepare.ts'
import { ringOf } from '../../support/world/rings.ts'

const secrets = makeSecrets(ringOf('b'.repeat(64)))
const hashes = {
  addressHmac: (address: string) => secrets.addressHmac('account', address),
  tagHash: (tag: string) => secrets.tagHash('server', tag),
}
const check = compileBody<BroadcastBody>(BROADCAST_BODY)

function prepared(changes: object) {
  const body = { streamId: '01a1f8d8-8300-7000-8000-0e7faee555a7', from: 'news@acme.example', subject: 'x', ...changes }
  // As it comes: only so is `__proto__` a field.
  const checked = check(JSON.parse(JSON.stringify(body)), false)
  if (!checked.ok) throw new Error(JSON.stringify(checked.issues))
  const issues = checkBroadcast(checked.value)
  if (issues.length > 0) throw new Error(JSON.stringify(issues))
  return prepareBroadcast(checked.value, hashes)
}

t.test('prepare: a small one counts shared content once, and each recipient’s own [broadcast.size]', async (t) => {
  const messages = [
    { to: 'ada@example.net', substitutions: { a: 'é' } },
    { to: 'bob@example.net', substitutions: { a: '12' } },
  ]
  const [one, two] = [
    prepared({ text: '{{a}}', messages: messages.slice(0, 1) }),
    prepared({ text: '{{a}}', messages }),
  ]
  t.equal(one.largestBytes, null)
  t.equal(two.sizeBytes - one.sizeBytes, 'bob@example.net'.length + 'a12'.length)
})

t.test('prepare: a message that no machine could build is too large, and is not built [broadcast.size]', async (t) => {
  const text = '{{a}}'.repeat(400_000)
  const messages = [
    { to: 'small@example.net', substitutions: { a: 'x' } },
    { to: 'large@example.net', substitutions: { a: '"'.repeat(500) } },
  ]
  const { largestBytes } = prepared({ html: text, messages })
  t.ok((largestBytes ?? 0) >= 400_000 * 500 * '&quot;'.length, String(largestBytes))
})

t.test('prepare: of many the one that escapes make large is found [broadcast.size]', async (t) => {
  const values = [...Array.from({ length: 20 }, () => 'aaaaaa'), '&&&&&']
  const messages = values.map((a, n) => ({ to: `p${n}@example.net`, substitutions: { a } }))
  const { largestBytes } = prepared({ html: '{{a}}'.repeat(500_000), messages })
  t.ok((largestBytes ?? 0) > MESSAGE_BYTES_MAX, String(largestBytes))
})

t.test(
  'prepare: properties that every object has are no values of a placeholder [broadcast.placeholders]',
  async (t) => {
    const substitutions = JSON.parse('{"constructor":"a","toString":"b","__proto__":"c"}')
    const html = `{{constructor}}{{toString}}{{__proto__}}${'ü'.repeat(2_000_000)}`
    // Its bound is too large, so it is built.
    const { sizeBytes } = prepared({ html, messages: [{ to: 'ada@example.net', substitutions }] })
    t.ok(sizeBytes > 4_000_000)
  },
)
