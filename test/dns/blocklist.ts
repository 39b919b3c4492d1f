/** blocklist - names of addresses, and lists that work, refuse, list everything or are gone, over real DNS. */
import t from 'tap'
import { askBlocklists, blocklistName } from '../../src/dns/blocklist.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { blocklistFinding } from '../../src/health/blocklists.ts'
import { watchBlocklists } from '../../src/service/blocklist-watch.ts'
import { until } from '../support/machine/until.ts'
import { startZone } from '../support/peers/zone.ts'

const zone = await startZone()
const resolver = createResolver({ servers: [zone.server], nowMs: () => performance.now() })
t.teardown(async () => {
  resolver.close()
  await zone.close()
})
const OURS = '192.0.2.25'
const OURS_V6 = '2001:db8::25'
const list = (name: string, address: string, code: string) =>
  zone.set(blocklistName(address, name), { type: 'A', address: code })
const ask = async (...lists: string[]) => askBlocklists(resolver, { lists, addresses: [OURS, OURS_V6] })

/** A list that works. */
function open(name: string): string {
  list(name, '127.0.0.2', '127.0.0.2')
  return name
}

t.test('blocklist: the names of RFC 5782', async (t) => {
  t.equal(blocklistName('192.0.2.99', 'bad.example.com'), '99.2.0.192.bad.example.com')
  t.equal(
    blocklistName('2001:db8:1:2:3:4:567:89ab', 'ugly.example.com'),
    'b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ugly.example.com',
  )
})

t.test(
  'blocklist: an address is listed, with its codes and the reason, or it is not [blocklist.answers]',
  async (t) => {
    t.same(await ask(open('clean.test')), [{ list: 'clean.test', unusable: null, listings: [] }])
    open('listed.test')
    zone.set(
      blocklistName(OURS, 'listed.test'),
      { type: 'A', address: '127.0.0.3' },
      { type: 'TXT', data: ['https://why.test/\u0007'] },
    )
    t.same(await ask('listed.test'), [
      {
        list: 'listed.test',
        unusable: null,
        listings: [{ address: OURS, codes: ['127.0.0.3'], reason: 'https://why.test/ ' }],
      },
    ])
  },
)

t.test('blocklist: IPv6 counts only at a list that has it [blocklist.answers]', async (t) => {
  open('four.test')
  list('four.test', OURS_V6, '127.0.0.2')
  t.match(await ask('four.test'), [{ unusable: null, listings: [] }])
  open('six.test')
  list('six.test', '::ffff:7f00:2', '127.0.0.2')
  list('six.test', OURS_V6, '127.0.0.4')
  t.match(await ask('six.test'), [{ listings: [{ address: OURS_V6, codes: ['127.0.0.4'] }] }])
})

t.test('blocklist: a list that does not prove to work is unusable [blocklist.answers]', async (t) => {
  open('all.test')
  list('all.test', '127.0.0.1', '127.0.0.2')
  list('all.test', OURS, '127.0.0.2')
  list('refusing.test', '127.0.0.2', '127.255.255.254')
  open('limited.test')
  list('limited.test', OURS, '127.255.255.255')
  open('parked.test')
  list('parked.test', OURS, '203.0.113.1')
  zone.fail(blocklistName('127.0.0.2', 'silent.test'), 'servfail')
  const results = await ask('gone.test', 'all.test', 'refusing.test', 'limited.test', 'parked.test', 'silent.test')
  t.same(
    results.map(({ unusable }) => unusable),
    ['no_test_entry', 'lists_everything', 'refused', 'refused', 'bad_answer', 'no_answer'],
  )
  t.ok(results.every(({ listings }) => listings.length === 0))
})

t.test('blocklist: a lost answer about one address hides no listing of another [blocklist.answers]', async (t) => {
  open('losing.test')
  list('losing.test', '::ffff:7f00:2', '127.0.0.2')
  list('losing.test', OURS, '127.0.0.2')
  zone.fail(blocklistName(OURS_V6, 'losing.test'), 'servfail')
  t.match(await ask('losing.test'), [{ unusable: null, listings: [{ address: OURS }] }])
})

t.test('blocklist: the finding of doctor [blocklist.check]', async (t) => {
  const clean = { list: 'a.test', unusable: null, listings: [] }
  t.match(blocklistFinding([clean], [OURS]), { status: 'ok', message: `${OURS} on none of a.test` })
  const listed = { ...clean, list: 'b.test', listings: [{ address: OURS, codes: ['127.0.0.2'], reason: 'spam' }] }
  t.match(blocklistFinding([clean, listed], [OURS]), {
    status: 'warning',
    message: `${OURS} is on b.test (127.0.0.2): spam`,
  })
  t.match(blocklistFinding([{ ...clean, unusable: 'refused' }], [OURS]), {
    status: 'warning',
    message: 'a.test refuses the resolver of this machine',
  })
})

t.test('blocklist: it is asked again and again, and changes are logged [blocklist.check]', async (t) => {
  open('watched.test')
  const reported: number[] = []
  const lines: string[] = []
  const end = watchBlocklists({
    lists: ['watched.test'],
    resolver,
    sendingAddresses: async () => [OURS],
    metrics: { blocklists: (results) => void reported.push(results[0]?.listed ?? -1) },
    log: {
      warn: (_: object, text: string) => lines.push(text),
      info: (_: object, text: string) => lines.push(text),
    } as never,
    random: () => 0,
    everyMs: 20,
  })
  t.teardown(end)
  await until(() => reported.length > 1, 10_000)
  list('watched.test', OURS, '127.0.0.2')
  await until(() => reported.includes(1), 10_000)
  zone.remove(blocklistName('127.0.0.2', 'watched.test'))
  await until(() => reported.at(-1) === -1, 10_000)
  open('watched.test')
  await until(() => reported.at(-1) === 1, 10_000)
  zone.remove(blocklistName(OURS, 'watched.test'))
  await until(() => lines.length === 2, 10_000)
  t.same(lines, ['Sending addresses are on a blocklist', 'Sending addresses are on no blocklist any more'])
  end()
  const asked = zone.asked.length
  await new Promise((resolve) => setTimeout(resolve, 100))
  t.ok(zone.asked.length - asked <= 3, 'it has ended')
})
