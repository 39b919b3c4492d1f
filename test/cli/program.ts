/** program - the commands as a user calls them, against a real HTTP listener. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { Domain, DomainChecked } from '../../schemas/domain.ts'
import { startCommandLine } from '../support/service/command-line.ts'

const { run, stop } = await startCommandLine()
t.teardown(stop)

const ID = '01930000-0000-7000-8000-000000000001'
const RECORDS = [
  'sw-bounce.acme.com',
  '0123456789abcdef.rp.sendwright.localhost',
  's1._domainkey.acme.com',
  'v=DKIM1; k=rsa; p=MIIB',
]

interface Asked {
  line: string
  headers: IncomingHttpHeaders
  body: unknown
}

type Answer = [status: number, body: unknown]

/** A listener that gives `answers` in turn (the last one again and again) and remembers what it was asked. */
async function listen(t: Test, answers: Answer[]) {
  const asked: Asked[] = []
  const listener = createServer(async (request, response) => {
    const body = await text(request)
    asked.push({ line: `${request.method} ${request.url}`, headers: request.headers, body: body && JSON.parse(body) })
    const [status, answer] = answers[Math.min(asked.length, answers.length) - 1] as Answer
    response.writeHead(status).end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  return { asked, url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}` }
}

function domainOf(verified: boolean): Domain {
  const record = { verified, verifiedAt: null }
  return {
    domainId: ID,
    domain: 'acme.com',
    verified,
    testOnly: false,
    createdAt: '2026-01-01T00:00:00.000Z',
    lastCheckedAt: null,
    failingSince: null,
    returnPath: { type: 'CNAME', host: RECORDS[0] as string, value: RECORDS[1] as string, ...record },
    dkim: { type: 'TXT', host: RECORDS[2] as string, value: RECORDS[3] as string, ...record },
    recommended: [],
  }
}

function checkedOf(verified: boolean): DomainChecked {
  return {
    ...domainOf(verified),
    check: { returnPath: 'ok', dkim: verified ? 'ok' : 'missing', found: { returnPath: [], dkim: [] } },
  }
}

function messageOf(status: string, event?: string) {
  const events = [
    {
      event,
      recipient: 'ann@example.com',
      occurredAt: '2026-01-01T00:00:01.000Z',
      details: { code: 250, response: '250 2.0.0 OK (test)' },
    },
  ]
  return { messageId: ID, recipients: [{ recipient: 'ann@example.com', status }], events: event ? events : [] }
}

const SEND = ['send', '--from', 'us@acme.com', '--to', 'ann@example.com', '--subject', 'Hello', '--text', 'Hi']
const ACCEPTED = { messageId: ID, status: 'accepted', submittedAt: '2026-01-01T00:00:00.000Z', test: true }

t.test('sendwright: help names every command and option', async (t) => {
  const pages: [string[], string[]][] = [
    [['--help'], ['start', 'domain', 'send', '--version']],
    [
      ['domain', '--help'],
      ['add', 'list', 'verify'],
    ],
    [
      ['domain', 'add', '--help'],
      ['<domain>', '--url', '--token', '--json'],
    ],
    [
      ['domain', 'list', '--help'],
      ['--url', '--token', '--json'],
    ],
    [
      ['domain', 'verify', '--help'],
      ['<domain>', '--url', '--token', '--json'],
    ],
    [
      ['send', '--help'],
      [
        '--from',
        '--to',
        '--subject',
        '--text',
        '--html',
        '--stream',
        '--idempotency-key',
        '--wait',
        '--url',
        '--token',
        '--json',
      ],
    ],
  ]
  for (const [args, words] of pages) {
    const { out, code } = await run(args)
    t.equal(code, 0, args.join(' '))
    for (const word of words) t.ok(out.includes(word), `${args.join(' ')} names ${word}`)
  }
  t.match(await run(['--version']), { out: /^\d+\.\d+\.\d+\n$/, code: 0 })
})

t.test('sendwright: a wrong call exits 2 and asks nobody', async (t) => {
  const { asked, url } = await listen(t, [[200, {}]])
  const calls = [
    [],
    ['sned'],
    ['domain', 'add'],
    ['send', '--url', url],
    [...SEND.slice(0, -2), '--url', url],
    [...SEND, '--url', 'acme'],
  ]
  for (const args of calls) t.equal((await run(args, { SENDWRIGHT_TOKEN: 'sk_x' })).code, 2, args.join(' '))
  t.equal(asked.length, 0)
})

t.test('domain add: prints the records to create', async (t) => {
  const { asked, url } = await listen(t, [[201, domainOf(false)]])
  const { out, code } = await run(['domain', 'add', 'acme.com', '--url', url, '--token', 'ak_x'])
  t.equal(code, 0)
  t.match(asked, [
    {
      line: 'POST /v1/domains',
      body: { domain: 'acme.com' },
      headers: { authorization: 'Bearer ak_x', 'content-type': 'application/json' },
    },
  ])
  t.match(out, new RegExp(`^CNAME +${RECORDS[0]} +${RECORDS[1]}$`, 'm'))
  t.match(out, new RegExp(`^TXT +${RECORDS[2]} +${RECORDS[3]}$`, 'm'))
  t.match(out, 'sendwright domain verify acme.com')
})

t.test('domain add --zone, domain show --zone: the records as a zone file', async (t) => {
  const { url } = await listen(t, [
    [201, domainOf(false)],
    [200, domainOf(false)],
  ])
  const to = ['--zone', '--url', url, '--token', 'ak_x']
  for (const args of [
    ['domain', 'add', 'acme.com', ...to],
    ['domain', 'show', ID, ...to],
  ]) {
    const { out, code } = await run(args)
    t.equal(code, 0)
    t.equal(out.trim().split('\n').length, 2)
    t.match(out, `${RECORDS[0]}. 3600 IN CNAME ${RECORDS[1]}.\n`)
    t.match(out, `${RECORDS[2]}. 3600 IN TXT "`)
  }
})

t.test('domain verify: of a mismatch, what stands there instead', async (t) => {
  const found = { returnPath: ['elsewhere.example'], dkim: [] }
  const check = { returnPath: 'mismatch', dkim: 'ok', found } as const
  const { url } = await listen(t, [[200, { ...checkedOf(false), check }]])
  const { out, code } = await run(['domain', 'verify', ID, '--url', url, '--token', 'ak_x'])
  t.equal(code, 1)
  t.match(out, `Instead, CNAME ${RECORDS[0]} is elsewhere.example`)
})

t.test('domain add: warns of records that nobody else finds, on standard error', async (t) => {
  const own = domainOf(false)
  const returnPath = { ...own.returnPath, value: '0123456789abcdef.rp.svc.acme.net' }
  const { url } = await listen(t, [
    [201, own],
    [201, { ...own, returnPath }],
  ])
  const add = () => run(['domain', 'add', 'acme.com', '--json', '--url', url, '--token', 'ak_x'])
  const local = await add()
  t.match(local, {
    code: 0,
    err: /These records name SERVICE_DOMAIN, which is under \.localhost and unknown to other servers/,
  })
  t.match(JSON.parse(local.out), { domain: 'acme.com' }, 'what is printed stays JSON')
  t.match(await add(), { code: 0, err: '' })
})

t.test('domain list: walks all pages', async (t) => {
  const pages: Answer[] = [
    [200, { domains: [domainOf(true)], next: ID }],
    [200, { domains: [{ ...domainOf(false), domain: 'acme.net' }], next: null }],
  ]
  const { asked, url } = await listen(t, pages)
  const { out, code } = await run(['domain', 'list', '--url', url, '--token', 'ak_x'])
  t.equal(code, 0)
  t.same(
    asked.map(({ line }) => line),
    ['GET /v1/domains?limit=100', `GET /v1/domains?limit=100&after=${ID}`],
  )
  t.match(out, /^acme\.com +yes /m)
  t.match(out, /^acme\.net +no /m)
})

t.test('domain verify: prints the check; exit code 1 until verified', async (t) => {
  const { asked, url } = await listen(t, [
    [200, checkedOf(false)],
    [200, checkedOf(true)],
  ])
  const first = await run(['domain', 'verify', ID, '--url', url, '--token', 'ak_x'])
  t.match(first, { code: 1, out: /^ok +CNAME .*\nmissing +TXT .*\n\nacme\.com is not verified yet$/m })
  const second = await run(['domain', 'verify', ID, '--url', url, '--token', 'ak_x', '--json'])
  t.equal(second.code, 0)
  t.same(JSON.parse(second.out), checkedOf(true))
  t.match(asked, [{ line: `POST /v1/domains/${ID}/verify`, body: '' }])
  t.notOk(asked[0]?.headers['content-type'], 'no body, no media type')
})

t.test('domain verify: a name is looked up in the list', async (t) => {
  const { asked, url } = await listen(t, [
    [200, { domains: [domainOf(false)], next: null }],
    [200, checkedOf(true)],
  ])
  t.equal((await run(['domain', 'verify', 'ACME.com', '--url', url, '--token', 'ak_x'])).code, 0)
  t.equal(asked[1]?.line, `POST /v1/domains/${ID}/verify`)
  const unknown = await run([
    'domain',
    'verify',
    'acme.org',
    '--url',
    (await listen(t, [[200, { domains: [], next: null }]])).url,
    '--token',
    'ak_x',
  ])
  t.match(unknown, { code: 1, err: /No sending domain acme\.org/ })
})

t.test('send: posts the message and prints its id', async (t) => {
  const { asked, url } = await listen(t, [[200, ACCEPTED]])
  const { out, code } = await run(
    [...SEND, '--to', 'bob@example.com', '--html', '<p>Hi', '--idempotency-key', 'k-1', '--url', `${url}/`],
    { SENDWRIGHT_TOKEN: 'sk_x' },
  )
  t.same([code, out], [0, `${ID}\n`])
  t.match(asked, [{ line: 'POST /v1/email', headers: { authorization: 'Bearer sk_x', 'idempotency-key': 'k-1' } }])
  t.same(asked[0]?.body, {
    from: 'us@acme.com',
    to: ['ann@example.com', 'bob@example.com'],
    subject: 'Hello',
    text: 'Hi',
    html: '<p>Hi',
  })
})

t.test('send --wait: polls until every recipient has ended and prints the events', async (t) => {
  const { asked, url } = await listen(t, [
    [200, ACCEPTED],
    [200, messageOf('accepted')],
    [200, messageOf('deferred', 'deferred')],
    [200, messageOf('delivered', 'delivered')],
  ])
  const { out, code } = await run([...SEND, '--wait', '--url', url, '--token', 'sk_x'])
  t.equal(code, 0)
  t.same(
    asked.map(({ line }) => line),
    ['POST /v1/email', ...Array(3).fill(`GET /v1/messages/${ID}`)],
  )
  t.match(out, new RegExp(`^${ID}\n`))
  t.match(out, /^2026-01-01T00:00:01\.000Z +delivered +ann@example\.com +250 2\.0\.0 OK \(test\)$/m)
  const bounced = await listen(t, [
    [200, ACCEPTED],
    [200, messageOf('bounced', 'bounced')],
  ])
  t.equal((await run([...SEND, '--wait', '--url', bounced.url, '--token', 'sk_x'])).code, 1)
})

t.test('sendwright: a refusal is told in words, or as it came with --json, and exits 1', async (t) => {
  const body = {
    error: 'invalid_request',
    message: 'The body is invalid',
    issues: [{ path: 'to.0', message: 'Not an address' }],
  }
  const { url } = await listen(t, [[400, body]])
  const told = await run([...SEND, '--url', url, '--token', 'sk_x'])
  t.same(told, {
    code: 1,
    out: '',
    err: 'Refused with 400 invalid_request: The body is invalid\n  to.0: Not an address\n',
  })
  const asJson = await run([...SEND, '--url', url, '--token', 'sk_x', '--json'])
  t.equal(asJson.code, 1)
  t.same(JSON.parse(asJson.out), body)
  const plain = await listen(t, [[429, '429 Too Many Requests']])
  t.match(await run([...SEND, '--url', plain.url, '--token', 'sk_x']), {
    code: 1,
    err: /^Unexpected answer 429: 429 Too Many Requests\n$/,
  })
})

t.test('sendwright: nobody listening and no key exit 1 with the reason', async (t) => {
  const { url } = await listen(t, [[200, {}]])
  t.match(await run(['domain', 'list', '--url', url]), { code: 1, err: /^No API key: / })
  const refused = await run(['domain', 'list', '--url', 'http://127.0.0.1:1', '--token', 'ak_x'])
  t.match(refused, { code: 1, err: /^No answer from http:\/\/127\.0\.0\.1:1: / })
})

t.test('sendwright: the key and the address come from first-run.json when nothing else is given', async (t) => {
  const { asked, url } = await listen(t, [[200, { ...ACCEPTED, domains: [], next: null }]])
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-cli-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const firstRun = { baseUrl: url, account: { token: 'ak_first' }, testServer: { token: 'sk_test_first' } }
  writeFileSync(join(dir, 'first-run.json'), JSON.stringify(firstRun))
  t.equal((await run(SEND, { DATA_DIR: dir })).code, 0)
  t.equal((await run(['domain', 'list'], { DATA_DIR: dir })).code, 0)
  t.equal((await run(SEND, { DATA_DIR: dir, SENDWRIGHT_TOKEN: 'sk_set' })).code, 0)
  t.equal((await run([...SEND, '--token', 'sk_given'], { DATA_DIR: dir, SENDWRIGHT_TOKEN: 'sk_set' })).code, 0)
  t.same(
    asked.map(({ headers }) => headers.authorization),
    ['Bearer sk_test_first', 'Bearer ak_first', 'Bearer sk_set', 'Bearer sk_given'],
  )
})

t.test('sendwright: of two kinds of key a command takes the one that it needs, or says which that is', async (t) => {
  const { asked, url } = await listen(t, [[200, { ...ACCEPTED, domains: [], next: null }]])
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-cli-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const [testServer, liveServer] = [{ token: 'sk_test_first' }, { token: 'sk_first' }]
  const firstRun = { baseUrl: url, account: { token: 'ak_first' }, testServer, liveServer }
  writeFileSync(join(dir, 'first-run.json'), JSON.stringify(firstRun))
  // As a user has it who has set the key of one server for all that follows.
  const set = { DATA_DIR: dir, SENDWRIGHT_TOKEN: 'sk_set' }
  t.equal((await run(['domain', 'list'], set)).code, 0)
  t.equal((await run(SEND, { ...set, SENDWRIGHT_TOKEN: 'ak_set' })).code, 0)
  t.equal((await run(['domain', 'list'], { ...set, SENDWRIGHT_TOKEN: 'ak_set' })).code, 0)
  t.equal((await run([...SEND, '--live'], set)).code, 0)
  t.same(
    asked.map(({ headers }) => headers.authorization),
    ['Bearer ak_first', 'Bearer sk_test_first', 'Bearer ak_set', 'Bearer sk_first'],
  )
  t.match(await run(['domain', 'list', '--token', 'sk_given'], set), {
    code: 1,
    err: /This command needs an account key \(ak_\): the key given with --token is a server key \(sk_\)/,
  })
  t.match(await run(['domain', 'list'], { ...set, DATA_DIR: '/nonexistent' }), {
    code: 1,
    err: /needs an account key \(ak_\).*SENDWRIGHT_TOKEN is a server key/,
  })
  t.equal(asked.length, 4, 'nobody was asked with a key that cannot fit')
})
