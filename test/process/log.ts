/** log - what is written, and what never is. */
import { Writable } from 'node:stream'
import { Redis } from 'ioredis'
import t from 'tap'
import { makeLog, withoutAddresses } from '../../src/process/log.ts'
import { startRedis } from '../support/store/redis.ts'

function recorded(isTerminal = false) {
  const lines: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const log = makeLog({ level: 'debug', isTerminal, sink })
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? '') as Record<string, unknown> }
}

t.test('log: a line is JSON with time, level, facts and text', async (t) => {
  const { log, last } = recorded()
  log.info({ shard: 17 }, 'Acquired')
  t.match(last(), { level: 'info', shard: 17, msg: 'Acquired', time: /^\d{4}-\d\d-\d\dT/ })
})

t.test('log: what lies below the level is not written', async (t) => {
  const lines: string[] = []
  const log = makeLog({ level: 'warn', isTerminal: false, sink: { write: (line: string) => void lines.push(line) } })
  log.info('quiet')
  log.warn('heard')
  t.equal(lines.length, 1)
})

t.test('log: personal fields are blanked at every depth that is looked at', async (t) => {
  const { log, lines } = recorded()
  log.info({ subject: 'Secret plan', message: { to: 'Ann Example', deeper: { subject: 'Secret plan' } } }, 'sent')
  log.child({ recipient: 'Ann Example' }).info('again')
  t.notMatch(lines.join(''), /Secret plan|Ann Example/)
  t.match(lines.join(''), /<personal>/)
})

t.test('log: addresses are blanked wherever they stand', async (t) => {
  const { log, lines } = recorded()
  log.info({ response: '550 5.1.1 <ann@example.com>: no such user' }, "refused for bob.o'neil+x@mail.example.org")
  log.error({ err: new Error('Refused by ann@example.com') }, 'failed')
  t.notMatch(lines.join(''), /ann|bob|neil|example\.(com|org)/)
  t.match(lines[0], /550 5\.1\.1 <<address>>: no such user/)
})

t.test('log: only addresses are taken for addresses', async (t) => {
  for (const text of ['/app/node_modules/@tapjs/core/index.js', 'uws-pack@20.0.8', 'a @ b.c', 'me@localhost']) {
    t.equal(withoutAddresses(text), text)
  }
  const some = ['a@b.co', '"a b"@b.co', 'a@[10.0.0.1]', 'ünï@exämple.com', `${'x'.repeat(64)}@b.co`]
  for (const text of some.slice(0, 1).concat(some.slice(2))) t.equal(withoutAddresses(text), '<address>', text)
  t.equal(withoutAddresses(JSON.stringify(some[1])), '"<address>"')
})

t.test('log: an error of ioredis comes without its command', async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  const error = await client.call('HSET', 'k', 'Ann Example').catch((caught: unknown) => caught)
  t.match(error, { command: { args: ['k', 'Ann Example'] } }, 'ioredis hangs it on')
  const { log, lines } = recorded()
  log.error({ err: error }, 'commit failed')
  log.error(error)
  t.equal(lines.length, 2)
  t.notMatch(lines.join(''), /Ann Example/)
  t.match(JSON.parse(lines[0] ?? ''), { err: { type: 'ReplyError', message: /wrong number of arguments/, stack: /./ } })
})

t.test(
  'log: a sentence that is said again and again is counted, but for the fatal and the debugging one',
  async (t) => {
    const { log, lines } = recorded()
    for (let n = 0; n < 300; n += 1) log.warn({ shard: n }, 'No answer')
    t.equal(lines.length, 20)
    t.match(JSON.parse(lines[19] ?? ''), { shard: 19, msg: 'No answer' })
    log.warn('Another sentence')
    t.equal(lines.length, 21)
    for (let n = 0; n < 30; n += 1) log.fatal({}, 'Ends')
    for (let n = 0; n < 30; n += 1) log.debug({}, 'Looks')
    t.equal(lines.length, 81)
  },
)

t.test('log: a line that quotes much is cut, and stays JSON without addresses', async (t) => {
  const { log, last, lines } = recorded()
  log.info({ answer: 'ann@acme.example '.repeat(100_000) }, 'Refused')
  t.ok((lines.at(-1)?.length ?? 0) < 20_000)
  t.match(last(), { level: 'warn', msg: 'A line was too long', start: /Refused|<address>/ })
  t.notMatch(lines.join(''), /ann@/)
  log.info('Next')
  t.match(last(), { level: 'info', msg: 'Next' })
})

t.test('log: on a terminal a line is for people', async (t) => {
  const { log, lines } = recorded(true)
  log.info({ shard: 17 }, 'Acquired for ann@example.com')
  t.match(lines.join(''), /INFO.*: Acquired for <address>\n\s+shard: 17/)
})
