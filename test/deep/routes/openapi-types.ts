/**
 * openapi-types - a program of six calls compiles with the types of openapi-typescript, and runs
 *
 * Without the npm registry the test is skipped.
 */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { installGenerators } from '../../support/clients/generators.ts'
import { startTestService } from '../../support/service/service.ts'

const PACKAGES = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3']
const MS_MAX = 120_000

const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './public.js'
import type { paths as OperatorPaths } from './operator.js'

const { URL_OF_API: baseUrl, SERVER_KEY, URL_OF_OPERATOR, OPERATOR_KEY } = process.env as Record<string, string>
const client = createClient<paths>({ baseUrl, headers: { authorization: 'Bearer ' + SERVER_KEY } })
const operator = createClient<OperatorPaths>({ baseUrl: URL_OF_OPERATOR, headers: { authorization: 'Bearer ' + OPERATOR_KEY } })

const email: components['schemas']['Email'] = {
  from: { email: 'hello@simulator.test', name: 'Acme' },
  to: ['ada@simulator.test'],
  subject: 'Types',
  text: 'They fit.',
}
const sent = await client.POST('/v1/email', { body: email })
if (sent.data === undefined) throw new Error(sent.error.message)
const id: string = sent.data.messageId
const read = await client.GET('/v1/messages/{id}', { params: { path: { id } } })
const status: 'accepted' | 'delivered' | string | undefined = read.data?.recipients[0]?.status
const found = await client.POST('/v1/messages/search', { body: { recipient: 'ada@simulator.test' } })
const hook = await client.POST('/v1/webhooks', { body: { url: 'https://hooks.example/', events: ['delivered', 'bounced'] } })
const secret: string | undefined = hook.data?.secret
const refused = await client.POST('/v1/email', { body: { ...email, from: 'hello@unknown.example' } })
const code = refused.error !== undefined && 'domain' in refused.error ? refused.error.error : 'none'
const accounts = await operator.GET('/v1/operator/accounts')
const name: string | undefined = accounts.data?.accounts[0]?.name
console.log(JSON.stringify({ id, status, found: found.data?.messages.length, secret, code, name }))
`

/** Each is one line that must not compile, so the types are more precise than "anything". */
const WRONG = [
  `export const wrong1: components['schemas']['Email'] = { to: ['a@b.example'], subject: 'No from' }`,
  `export const wrong2: components['schemas']['Email'] = { from: 'a@b.example', to: 'a@b.example', subject: 'No list', text: 'x' }`,
  `export const wrong3: components['schemas']['Email'] = { from: 'a@b.example', to: [], subject: 'No field', text: 'x', txt: 1 }`,
  `export const wrong4: components['schemas']['EmailAnswer'] = { messageId: 1 }`,
]

const IMPORT = `import type { components } from './public.js'`
const run = promisify(execFile)
// The runner's loader is not the child's.
const { NODE_OPTIONS: _loader, ...env } = process.env

const generators = await installGenerators('openapi-types', PACKAGES)
t.test(
  'openapi: a program of six calls compiles with the generated types, and runs [openapi.document]',
  { skip: typeof generators === 'string' && generators },
  async (t) => {
    if (typeof generators === 'string') return
    const service = await startTestService()
    t.teardown(() => service.stop())
    const { config, firstRun } = service
    for (const [name, document] of [
      ['public', await service.call('GET /v1/openapi.json')],
      ['operator', await service.operate('GET /v1/operator/openapi.json')],
    ] as const) {
      writeFileSync(join(generators.folder, `${name}.json`), document.text)
      await generators.node('openapi-typescript/bin/cli.js', `${name}.json`, '-o', `${name}.d.ts`)
    }
    const faults = await generators.compile(
      { 'program.ts': PROGRAM, 'wrong.ts': [IMPORT, ...WRONG].join('\n') },
      '--exactOptionalPropertyTypes',
      '--module',
      'nodenext',
    )
    t.same([...new Set(faults.match(/^[^\s(]+/gm))], ['wrong.ts'], faults)
    const { stdout } = await run(process.execPath, ['program.js'], {
      cwd: generators.folder,
      timeout: MS_MAX,
      env: {
        ...env,
        URL_OF_API: config.baseUrl,
        SERVER_KEY: firstRun.testServer.token,
        URL_OF_OPERATOR: config.operatorUrl,
        OPERATOR_KEY: firstRun.operatorToken,
      },
    })
    const said = JSON.parse(stdout)
    t.match(said, {
      id: /^[0-9a-f-]{36}$/,
      found: 1,
      secret: /^whsec_/,
      code: 'domain_not_verified',
      name: 'First account',
    })
    for (const [at, line] of WRONG.entries()) t.match(faults, `wrong.ts(${at + 2},`, line)
  },
)
