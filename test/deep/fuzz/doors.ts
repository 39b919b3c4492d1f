/**
 * Fuzz of every route of the doors: bodies near valid ones with odd values, forms that are cut or mixed up, odd queries
 * and paths. No 5xx, no crash, each refusal in the form of its door, memory that stays bounded. `FUZZ_RUNS` sets the
 * requests of each route that takes a body; others get a fifth.
 */
import fc from 'fast-check'
import t from 'tap'
import type { CompatibleApi } from '../../../schemas/config.ts'
import type { DoorRow } from '../../../src/doors/common/door-table.ts'
import { DOORS } from '../../../src/doors/doors.ts'
import { agent, type Came, residentMb, sendAgain } from '../../support/clients/crash-http.ts'
import { startScene } from '../../support/service/crash-scene.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 300)
const SEED = Number(process.env.SEED ?? 1)
const GROWTH_MB_MAX = 150
const AT_ONCE = 8

t.jobs = 1
const { settings, firstRun, host, end } = await startScene()
t.teardown(async () => {
  agent.destroy()
  await host.kill('SIGKILL')
  await end()
})
const port = Number(settings.HTTP_PORT)
const { token } = firstRun.testServer

const OWNER = { authorization: `Bearer ${firstRun.account.token}` }

/** The parts of requests to a door: credentials, a whole body, and names of parameters. */
interface Kind {
  readonly headers: Readonly<Record<string, string>>
  readonly bodies: readonly object[]
  readonly parameters: readonly string[]
  /** Whether a text is a refusal in the door's form. */
  readonly isRefusal: (json: Record<string, unknown>) => boolean
}

const file = { filename: 'a.txt', content: 'YQ==', content_type: 'text/plain' }
const KINDS: Readonly<Record<CompatibleApi, Kind>> = {
  resend: {
    headers: { authorization: `Bearer ${token}` },
    bodies: [
      {
        from: 'A <a@simulator.test>',
        to: ['b@simulator.test'],
        cc: 'c@simulator.test',
        reply_to: 'd@simulator.test',
        subject: 'Hello',
        text: 'Hello',
        html: '<p>Hello</p>',
        headers: { 'X-A': 'b' },
        tags: [{ name: 'a', value: 'b' }],
        attachments: [file, { filename: 'b', content: { type: 'Buffer', data: [1, 2] } }],
        scheduled_at: 'in 1 min',
      },
      { email: 'a@b.example' },
      { emails: ['a@b.example'], ids: [] },
      { scheduled_at: 'in 1 hour' },
    ],
    parameters: ['limit', 'after', 'before', 'origin', 'html_format'],
    isRefusal: ({ statusCode, name, message }) =>
      typeof statusCode === 'number' && typeof name === 'string' && typeof message === 'string',
  },
  postmark: {
    headers: { 'x-postmark-server-token': token },
    bodies: [
      {
        From: '"A, B" <a@simulator.test>',
        To: 'b@simulator.test, C <c@simulator.test>',
        Cc: 'd@simulator.test',
        ReplyTo: 'e@simulator.test',
        Subject: 'Hello',
        TextBody: 'Hello',
        HtmlBody: '<p>Hello</p>',
        Tag: 'a',
        Metadata: { a: 'b' },
        Headers: [{ Name: 'X-A', Value: 'b' }],
        Attachments: [{ Name: 'a.txt', Content: 'YQ==', ContentType: 'text/plain', ContentID: 'cid:a' }],
        MessageStream: 'outbound',
        TrackOpens: true,
      },
      { Suppressions: [{ EmailAddress: 'a@b.example' }] },
      { ID: 'a', Name: 'A', MessageStreamType: 'Broadcasts' },
    ],
    parameters: [
      'count',
      'offset',
      'fromdate',
      'toDate',
      'type',
      'inactive',
      'emailFilter',
      'tag',
      'metadata_a',
      'status',
    ],
    isRefusal: ({ ErrorCode, Message }) => typeof ErrorCode === 'number' && typeof Message === 'string',
  },
  mailgun: {
    headers: { authorization: `Basic ${Buffer.from(`api:${token}`).toString('base64')}` },
    bodies: [
      {
        from: 'A <a@simulator.test>',
        to: 'b@simulator.test, c@simulator.test',
        subject: 'Hello %recipient.name%',
        text: 'Hello {{{%recipient.name%}}',
        html: '<p>%unsubscribe_url%</p>',
        'h:List-Unsubscribe': '<%recipient.link%>, <%tag_unsubscribe_email%>',
        'h:Sender': 'a@simulator.test',
        'v:a': 'b',
        'o:tag': 'c',
        'o:deliverytime': new Date(Date.now() + 3_600_000).toUTCString(),
        'recipient-variables': '{"b@simulator.test":{"name":"B","link":"https://a.example"},"c@simulator.test":{}}',
      },
      { from: 'a@simulator.test', to: 'b@simulator.test', subject: 'Hello', text: 'Hello' },
    ],
    parameters: ['event', 'tags', 'begin', 'end', 'ascending', 'limit', 'recipient', 'message-id', 'severity'],
    isRefusal: ({ message }) => typeof message === 'string',
  },
}

const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', ' ', '<', '<>', '<<>', '"', '"a, b" <a@b.example', 'a@b', ',,,', '{{', '%recipient.%', '\ud800'),
  fc.constantFrom(null, true, 0, -1, 1e300, [], {}, [[]], [null], { __proto__: null }, ['a@b.example', 3]),
  fc.constantFrom('in 999999 weeks', '2026-13-99', '9'.repeat(20), 'x'.repeat(3_000), '../..', '%zz'),
  fc.jsonValue({ maxDepth: 3 }),
)

/** A body with some fields changed, left out or added; or a list of those. */
function near(bodies: readonly object[]): fc.Arbitrary<unknown> {
  const one = fc
    .tuple(
      fc.constantFrom(...bodies),
      fc.dictionary(fc.constantFrom(...bodies.flatMap(Object.keys), 'constructor', '__proto__', 'x'), odd, {
        maxKeys: 3,
      }),
      fc.boolean(),
    )
    .map(([body, changes, isWhole]) => (isWhole ? body : { ...body, ...changes }))
  return fc.oneof(one, one, fc.array(one, { maxLength: 4 }), odd)
}

function formOf(body: unknown): { readonly type: string; readonly bytes: Buffer } {
  const fields = Object.entries(typeof body === 'object' && body !== null ? body : { x: body })
  const texts = fields.map(
    ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
  )
  const form = new URLSearchParams(texts.map(([name, value]): [string, string] => [name, value ?? ''])).toString()
  return { type: 'application/x-www-form-urlencoded', bytes: Buffer.from(form) }
}

function multipartOf(body: unknown, cut: number): { readonly type: string; readonly bytes: Buffer } {
  const fields = Object.entries(typeof body === 'object' && body !== null ? body : { x: body })
  const parts = fields.map(([name, value]) => {
    const file = name === 'attachment' ? '; filename="a"' : ''
    return `--b\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${textOf(value)}\r\n`
  })
  const bytes = Buffer.from(`${parts.join('')}--b--\r\n`)
  return { type: 'multipart/form-data; boundary=b', bytes: bytes.subarray(0, bytes.length - (cut % bytes.length)) }
}

const segment = fc.oneof(
  fc.uuid(),
  fc.constantFrom(
    'outbound',
    'a%40b.example',
    '%',
    '%ff',
    '%00',
    'x'.repeat(300),
    '0',
    '9007199254740993',
    'e30',
    'W10',
  ),
  fc.string({ maxLength: 20 }).map(encodeURIComponent),
)

/** Values without a prototype have no text. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** The problem with an answer; null: none. */
function wrongOf({ status, text }: Came, { isRefusal }: Kind): string | null {
  if (status >= 500) return `status ${status}: ${text.slice(0, 200)}`
  if (status < 400) return null
  try {
    return isRefusal(JSON.parse(text) as Record<string, unknown>) ? null : `refusal ${text.slice(0, 200)}`
  } catch {
    return `no JSON: ${status} ${text.slice(0, 200)}`
  }
}

async function fuzz(row: DoorRow, kind: Kind): Promise<{ readonly wrong: string[]; readonly statuses: Set<number> }> {
  const { route, media } = row
  const runs = route.body === null ? Math.ceil(RUNS / 5) : RUNS
  const samples = fc.sample(
    fc.record({
      body: near(kind.bodies),
      query: fc.dictionary(fc.constantFrom(...kind.parameters), fc.oneof(odd, fc.constantFrom('1', 'yes')), {
        maxKeys: 3,
      }),
      segments: fc.array(segment, { minLength: 3, maxLength: 3 }),
      isQueried: fc.boolean(),
      isKnown: fc.boolean(),
      cut: fc.oneof(fc.constant(0), fc.nat(60)),
    }),
    { numRuns: runs, seed: SEED },
  )
  const wrong: string[] = []
  const statuses = new Set<number>()
  const client = async (): Promise<void> => {
    for (let one = samples.pop(); one !== undefined; one = samples.pop()) {
      const { body, query, segments, isQueried, isKnown, cut } = one
      let place = 0
      const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const made = segments[place++] ?? 'x'
        return name === 'domain' && isKnown ? 'simulator.test' : made === '' ? 'x' : made
      })
      const asked = new URLSearchParams(
        Object.entries(query).map(([name, value]): [string, string] => [name, textOf(value)]),
      ).toString()
      const sent =
        route.body === null
          ? { type: 'application/json', bytes: undefined }
          : media !== 'form'
            ? { type: 'application/json', bytes: Buffer.from(JSON.stringify(body) ?? 'null') }
            : cut % 2 === 0
              ? formOf(body)
              : multipartOf(body, cut)
      const came = await sendAgain({
        port,
        method: route.method,
        path: isQueried && route.query !== null ? `${path}?${asked}` : path,
        headers: { ...kind.headers, ...(route.keys[0] === 'A' && OWNER), 'content-type': sent.type },
        ...(sent.bytes !== undefined && { body: sent.bytes }),
      })
      statuses.add(came.status)
      const fault = wrongOf(came, kind)
      if (fault !== null) wrong.push(`${fault} for ${path}?${asked} ${JSON.stringify(body)?.slice(0, 300)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  return { wrong, statuses }
}

for (const { name, rows } of DOORS)
  t.test(`fuzz: every route of the door ${name} [fuzz.bodies]`, async (t) => {
    t.comment(`SEED=${SEED}`)
    const before = residentMb(host.pid)
    for (const row of rows) {
      const { wrong, statuses } = await fuzz(row, KINDS[name])
      t.same(wrong.slice(0, 5), [], `${row.route.method} ${row.route.path}: ${[...statuses].sort().join(' ')}`)
    }
    t.ok(host.isRunning())
    t.ok(residentMb(host.pid) - before < GROWTH_MB_MAX, 'memory stays bounded')
  })
