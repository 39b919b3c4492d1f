/**
 * openapi-clients - programs compile with the clients of @hey-api/openapi-ts and orval, and read `error.message`
 *
 * Without the npm registry the test is skipped.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { installGenerators } from '../../support/clients/generators.ts'
import { startTestService } from '../../support/service/service.ts'

const PACKAGES = ['@hey-api/openapi-ts@0.85.0', 'orval@7.13.0', 'typescript@5.9.3']

const EMAIL = `{ from: { email: 'hello@simulator.test', name: 'Acme' }, to: ['ada@simulator.test'], subject: 'Types', text: 'x' }`

const HEY = `
import { createClient } from './hey-public/client'
import { type Email, readMessage, sendEmail } from './hey-public'
import { listAccounts } from './hey-operator'

const client = createClient({ baseUrl: 'http://127.0.0.1', headers: { authorization: 'Bearer sk_' } })
const email: Email = ${EMAIL}
const sent = await sendEmail({ client, body: email })
if (sent.error !== undefined) throw new Error(sent.error.message)
const read = await readMessage({ client, path: { id: sent.data.messageId } })
if (read.error !== undefined) throw new Error(read.error.message)
const accounts = await listAccounts({ client })
const code: string | undefined = accounts.error?.error
console.log(read.data.recipients[0]?.status, accounts.data?.accounts[0]?.name, code)
`

const ORVAL = `
import { type Email, readMessage, sendEmail } from './orval/public'
import { listAccounts } from './orval/operator'

const headers = { authorization: 'Bearer sk_' }
const email: Email = ${EMAIL}
const sent = await sendEmail(email, { headers })
if (sent.status !== 200) throw new Error(sent.data.message)
const read = await readMessage(sent.data.messageId, { headers })
if (read.status !== 200) throw new Error(read.data.message)
const accounts = await listAccounts({}, { headers })
if (accounts.status !== 200) throw new Error(accounts.data.message)
console.log(read.data.recipients[0]?.status, accounts.data.accounts[0]?.name)
`

/** These lines must not compile. */
const WRONG = [
  `export const sent = await sendEmail({ body: { to: ['a@b.example'], subject: 'No from' } })`,
  `export const id: string | undefined = (await readMessage({ path: { id: 'x' } })).error?.massage`,
]
const IMPORT = `import { readMessage, sendEmail } from './hey-public'`
const FLAGS = ['--noEmit', '--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'es2022,dom,dom.iterable']

const generators = await installGenerators('openapi-clients', PACKAGES)
t.test(
  'openapi: programs that read error.message compile with generated clients [openapi.document]',
  { skip: typeof generators === 'string' && generators },
  async (t) => {
    if (typeof generators === 'string') return
    const service = await startTestService()
    t.teardown(() => service.stop())
    for (const [name, document] of [
      ['public', await service.call('GET /v1/openapi.json')],
      ['operator', await service.operate('GET /v1/operator/openapi.json')],
    ] as const) {
      const input = join(generators.folder, `${name}.json`)
      writeFileSync(input, document.text)
      rmSync(join(generators.folder, `hey-${name}`), { recursive: true, force: true })
      const hey = ['-i', input, '-o', `hey-${name}`, '-c', '@hey-api/client-fetch']
      await generators.node('@hey-api/openapi-ts/bin/index.cjs', ...hey)
      const orval = ['--input', input, '--output', `./orval/${name}.ts`, '--client', 'fetch']
      await generators.node('orval/dist/bin/orval.js', ...orval)
    }
    const wrong = [IMPORT, ...WRONG].join('\n')
    const faults = await generators.compile({ 'hey.ts': HEY, 'orval.ts': ORVAL, 'wrong.ts': wrong }, ...FLAGS)
    t.same([...new Set(faults.match(/^[^\s(]+/gm))], ['wrong.ts'], faults)
    for (const [at, line] of WRONG.entries()) t.match(faults, `wrong.ts(${at + 2},`, line)
  },
)
