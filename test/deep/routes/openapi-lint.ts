/** openapi-lint - `redocly lint` has no problem with the served documents; nothing is fetched, nothing is reported */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT } from '../../support/machine/root.ts'
import { startTestService } from '../../support/service/service.ts'

const run = promisify(execFile)
/**
 * `Event` is a named type for the lines of the feed, the plain-text responses belong to no operation, and the forms of
 * a batch differ by the value of `partial`.
 */
const SKIPPED = ['no-unused-components', 'no-illogical-composition-keywords']

const service = await startTestService({ BASE_URL: 'https://mail.example' })
t.teardown(() => service.stop())

const DOCUMENTS = {
  public: (await service.call('GET /v1/openapi.json')).json,
  operator: (await service.operate('GET /v1/operator/openapi.json')).json,
}

for (const [name, document] of Object.entries(DOCUMENTS))
  t.test(`openapi: redocly lint of the ${name} document has no error and no warning [openapi.document]`, async (t) => {
    const path = join(t.testdir(), `${name}.json`)
    writeFileSync(path, JSON.stringify(document))
    // The runner's loader is not the child's.
    const { NODE_OPTIONS: _loader, ...env } = process.env
    const quiet = { ...env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
    const skipped = SKIPPED.flatMap((rule) => ['--skip-rule', rule])
    const arguments_ = ['lint', path, '--format=json', ...skipped]
    const command = join(ROOT, 'node_modules/.bin/redocly')
    const { stdout } = await run(command, arguments_, { cwd: t.testdirName, env: quiet })
    const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf('{')))
    t.match(totals, { errors: 0, warnings: 0 }, JSON.stringify(problems))
  })

/** Fields and parameters without a description. */
function undescribed(node: unknown, path: string): string[] {
  if (typeof node !== 'object' || node === null) return []
  const { properties = {}, parameters = [] } = node as { properties?: object; parameters?: readonly { name: string }[] }
  const isBare = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && !('$ref' in value) && !('description' in value)
  const fields = Array.isArray(properties) ? [] : Object.entries(properties)
  const bare = [
    ...fields.filter(([, value]) => isBare(value)).map(([name]) => name),
    ...(Array.isArray(parameters) ? parameters.filter(isBare).map(({ name }) => name) : []),
  ]
  const deeper = Object.entries(node).flatMap(([key, value]) => undescribed(value, `${path}/${key}`))
  return [...bare.map((name) => `${path}/${name}`), ...deeper]
}

t.test('openapi: every field and parameter of the public document has a description [openapi.document]', async (t) => {
  const { paths, webhooks, components } = DOCUMENTS.public
  t.same(undescribed({ paths, webhooks, components }, ''), [])
})
