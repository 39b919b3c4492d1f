/**
 * ci-guide - the pipelines of docs/start/ci.md: their variables are settings, their service starts with the commands
 * that they have, and the key that they name sends.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { CLIENT_SETTINGS, SETTINGS } from '../../schemas/config.ts'
import { makeKey } from '../../src/http/key.ts'
import { blocksOf } from '../support/documents/blocks.ts'
import { freePort } from '../support/machine/port.ts'
import { ROOT } from '../support/machine/root.ts'

const STARTS = '/opt/sendwright/sendwright'
const NAMES: readonly string[] = [...SETTINGS, ...CLIENT_SETTINGS].map(({ name }) => name)

interface Pipeline {
  readonly variables: Readonly<Record<string, string>>
  readonly commands: readonly string[]
}

// biome-ignore lint/suspicious/noExplicitAny: a block holds what its system takes.
function pipelineOf(code: string): any {
  return parse(code)
}

const pipelines: readonly Pipeline[] = blocksOf('docs/start/ci.md')
  .filter(({ language }) => language === 'yaml')
  .map(({ code }): Pipeline => {
    const { jobs, test, services } = pipelineOf(code)
    if (jobs !== undefined)
      return {
        variables: jobs.test.env,
        commands: jobs.test.steps.flatMap(({ run = '' }) => String(run).split('\n')),
      }
    if (test !== undefined) return { variables: test.variables, commands: test.script }
    const { environment, command } = services.sendwright
    return {
      variables: environment,
      commands: [
        `${command.join(' ')} &`,
        'curl --retry 30 --retry-delay 1 --retry-connrefused --silent --fail http://127.0.0.1:8081/readyz',
      ],
    }
  })

t.test('ci: three pipelines name settings that exist', async (t) => {
  t.equal(pipelines.length, 3)
  for (const { variables } of pipelines) for (const name of Object.keys(variables)) t.ok(NAMES.includes(name), name)
})

t.test('ci: Testcontainers starts the image of the compose file with its command and key', async (t) => {
  const blocks = blocksOf('docs/start/ci.md')
  const [code = ''] = blocks.filter(({ language }) => language === 'ts').map((block) => block.code)
  const compose = blocks.map((block) => (block.language === 'yaml' ? pipelineOf(block.code) : {}))
  const { image, command, environment, ports } = compose.find(({ services }) => services !== undefined).services
    .sendwright
  const [, port] = ports[0].split(':')
  t.ok(code.includes(`new GenericContainer('${image}')`))
  t.ok(code.includes(`withCommand([${command.map((word: string) => `'${word}'`).join(', ')}])`))
  t.ok(code.includes(`withEnvironment({ ${Object.keys(environment)[0]}: `))
  t.ok(code.includes(`withExposedPorts(${port})`) && code.includes(`Wait.forHttp('/', ${port})`))
})

t.test('ci: the service starts as each of them says, and takes their key', async (t) => {
  for (const { variables, commands } of pipelines) {
    const dir = mkdtempSync(join(tmpdir(), 'sendwright-ci-'))
    const [http, operator] = [await freePort(), await freePort()]
    const key = makeKey('sk_test', 0).token
    const wanted = commands.filter((one) => one.includes(STARTS) || one.startsWith('curl'))
    t.equal(wanted.length, 2)
    const send = `curl --silent --fail http://127.0.0.1:8080/v1/server -H "Authorization: Bearer $FIRST_RUN_TEST_KEY"`
    const script = [...wanted, send, 'kill $!', 'wait']
      .join('\n')
      .replaceAll(STARTS, join(ROOT, 'sendwright'))
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${http}`)
      .replaceAll('127.0.0.1:8081', `127.0.0.1:${operator}`)
    const { NODE_OPTIONS: _loader, ...inherited } = process.env
    const own = { DATA_DIR: dir, HTTP_PORT: String(http), OPERATOR_PORT: String(operator), SUBMISSION_PORT: '0' }
    const keys = Object.fromEntries(Object.keys(variables).map((name) => [name, key]))
    const env = { ...inherited, ...own, SUBMISSION_TLS_PORT: '0', LOG_LEVEL: 'silent', ...keys }
    const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', 'sh', '-eu', '-c', script], { env, timeout: 90_000 })
    let out = ''
    for (const output of [child.stdout, child.stderr]) output.on('data', (piece) => (out += piece))
    const [code] = await once(child, 'close')
    t.equal(code, 0, out)
    t.match(out, /"mode":"test"/)
    rmSync(dir, { recursive: true, force: true })
  }
})
