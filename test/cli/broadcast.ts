/** broadcast - `sendwright broadcast preview|send|list|show|pause|resume|cancel` with files, against a real service. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startCommandLine } from '../support/service/command-line.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const commands = await startCommandLine()
const dir = mkdtempSync(join(tmpdir(), 'sendwright-broadcast-'))
t.teardown(async () => {
  commands.stop()
  rmSync(dir, { recursive: true })
  await service.stop()
})
const environment = { DATA_DIR: service.dataDir, HTTP_PORT: String(service.config.httpPort) }
const run = (...args: string[]) => commands.run(args, environment)

async function done(...args: string[]): Promise<string> {
  const { out, err, code } = await run(...args)
  t.equal(code, 0, `${args.join(' ')}: ${err}`)
  return out
}

const csv = join(dir, 'people.csv')
const text = join(dir, 'news.txt')
writeFileSync(csv, 'email,recipient_name,name\nann@simulator.test,,Ann\nben@simulator.test,Ben B,Ben\n')
writeFileSync(text, 'News for {{name}}.')
const FROM = 'News <news@simulator.test>'
const content = ['--from', FROM, '--subject', 'Hello {{name}}', '--text-file', text, '--csv', csv]
const { operatorToken, testServer } = service.firstRun
const made = { token: testServer.token, body: { name: 'Offers', kind: 'broadcast' } }
const { streamId } = (await service.call('POST /v1/streams', made)).json
await service.operate(`PATCH /v1/operator/streams/${streamId}`, {
  token: operatorToken,
  body: { pacePerMinute: 60_000 },
})

t.test('broadcast preview: one message of a file is shown, and nothing is sent [broadcast.preview]', async (t) => {
  const shown = await done('broadcast', 'preview', streamId, ...content, '--row', '2')
  t.match(shown, /^from +News <news@simulator\.test>$/m)
  t.match(shown, /^to +Ben B <ben@simulator\.test>$/m)
  t.match(shown, /^subject +Hello Ben$/m)
  t.match(shown, /^News for Ben\.$/m)
  const json = JSON.parse(await done('broadcast', 'preview', streamId, ...content, '--json'))
  t.match(json, { index: 0, to: 'ann@simulator.test', subject: 'Hello Ann', html: null })
  const past = await run('broadcast', 'preview', streamId, ...content, '--row', '3')
  t.match(past, { code: 1, err: /--row must be from 1 to 2/ })
  t.notMatch(await done('broadcast', 'list', '--stream', streamId), /Hello/)
})

t.test('broadcast send: to everybody in a file, until it has ended [broadcast.create]', async (t) => {
  const sent = await done('broadcast', 'send', streamId, ...content, '--wait')
  t.match(sent, /^status +completed$/m)
  t.match(sent, /^released +2$/m)
  const id = /^broadcastId +(\S+)$/m.exec(sent)?.[1] ?? ''
  t.match(await done('broadcast', 'show', id), /^total +2$/m)
  t.match(await done('broadcast', 'list', '--status', 'completed'), new RegExp(` ${id}$`, 'm'))
  t.match(await run('broadcast', 'cancel', id), { code: 1, err: /broadcast_not_open/ })
})

t.test('broadcast pause, resume, cancel [broadcast.pause] [broadcast.cancel]', async (t) => {
  const many = join(dir, 'many.csv')
  writeFileSync(many, `email,name\n${Array.from({ length: 300 }, (_, n) => `p${n}@simulator.test,P${n}`).join('\n')}\n`)
  await service.operate(`PATCH /v1/operator/streams/${streamId}`, { token: operatorToken, body: { pacePerMinute: 60 } })
  const sent = await done('broadcast', 'send', streamId, ...content.slice(0, -1), many)
  const id = /^broadcastId +(\S+)$/m.exec(sent)?.[1] ?? ''
  t.match(await done('broadcast', 'pause', id), /^pausedAt +\d/m)
  t.match(await done('broadcast', 'list'), /, paused +/)
  t.match(await done('broadcast', 'resume', id), /^pausedAt *(?:-|null)?$/m)
  t.match(await done('broadcast', 'cancel', id), /^status +cancelled$/m)
})
