/** suppression - entries lifted by their address, with a server's key and with the operator's. */
import t from 'tap'
import { startCommandLine } from '../support/service/command-line.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const commands = await startCommandLine()
t.teardown(async () => {
  commands.stop()
  await service.stop()
})
const { streamId, serverId } = service.firstRun.testServer
const { httpPort, operatorPort } = service.config
const environment = { DATA_DIR: service.dataDir, HTTP_PORT: String(httpPort), OPERATOR_PORT: String(operatorPort) }
const ADDRESS = 'ann@lifted.example'

const run = (...args: string[]) => commands.run(['suppression', ...args], environment)

async function listed(): Promise<string[]> {
  const { suppressions } = JSON.parse((await run('list', '--json')).out) as { suppressions: { recipient: string }[] }
  return suppressions.map(({ recipient }) => recipient).sort()
}

t.test('sendwright suppression lift: all entries of an address, whatever its case', async (t) => {
  t.match(await run('add', streamId, ADDRESS, 'bob@lifted.example'), { code: 0 })
  t.match(await run('lift', ADDRESS.toUpperCase(), '--stream', streamId), { code: 0, out: /^Lifted 1 of / })
  t.same(await listed(), ['bob@lifted.example'], 'others remain')
  t.match(await run('lift', ADDRESS), { code: 1, err: /ann@lifted\.example is not suppressed/ })
})

t.test('sendwright suppression lift: by the operator, who names the server', async (t) => {
  await run('add', streamId, ADDRESS)
  t.match(await run('lift', ADDRESS, '--operator'), { code: 1, err: /needs --server/ })
  const lifted = await run('lift', ADDRESS, '--operator', '--server', serverId, '--note', 'asked', '--json')
  t.match(JSON.parse(lifted.out), { recipient: ADDRESS, lifted: [String] })
  t.same(await listed(), ['bob@lifted.example'])
})
