/**
 * contract - what the documents say equals what the tables in schemas/ and the help of the commands say, in both
 * directions.
 *
 * Run with `--write` it writes the generated documents and tables instead of comparing them.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import t from 'tap'
import { CLIENT_SETTINGS, SETTINGS, type Setting } from '../schemas/config.ts'
import { makeDeclarations } from '../schemas/document/declarations.ts'
import { makeExample } from '../schemas/document/example.ts'
import { makeOpenapi } from '../schemas/document/openapi.ts'
import { COMMON, makeReference } from '../schemas/document/reference.ts'
import { REFUSALS } from '../schemas/refusals.ts'
import { ROUTES, type Route } from '../schemas/routes.ts'
import { EVENT_BODIES, type EventName } from '../schemas/webhook.ts'
import { makeProgram } from '../src/cli/program.ts'
import { DOCUMENTS } from './support/documents/blocks.ts'
import { errorSentences, sentencesIn } from './support/documents/sentences.ts'
import { ROOT } from './support/machine/root.ts'

const README_LINES_MAX = 200
/** What clients of other providers read. */
const NAMES_OF_CLIENTS = [
  'RESEND_BASE_URL',
  'RESEND_API_KEY',
  'RESEND_API_URL',
  'POSTMARK_API_URL',
  'POSTMARK_SERVER_TOKEN',
]
/** What Node.js reads, and the reasons that it has for a connection that fails. */
const NAMES_OF_NODE = [
  'NO_COLOR',
  'NODE_EXTRA_CA_CERTS',
  'LISTEN_FDS',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
]
const HELP_WIDTH = 120

/** Generated parts of documents, by the name in their markers. */
const PARTS: Record<string, { readonly file: string; readonly text: string }> = {
  settings: {
    file: 'docs/reference/settings.md',
    text: tableOf(['Variable', 'Default', 'Meaning'], SETTINGS.map(settingRow)),
  },
  'client-settings': {
    file: 'docs/reference/settings.md',
    text: tableOf(['Variable', 'Default', 'Meaning'], CLIENT_SETTINGS.map(settingRow)),
  },
}

/** What each event means, and the details of its example. */
const EVENT_MEANINGS: Readonly<Record<EventName, string>> = {
  delivered: "The recipient's mail server accepted the message. `details` holds its reply.",
  bounced:
    'The recipient will not get the message. `classification` is the kind of bounce, `hard` is true if the address itself is wrong, and `expired` if all attempts within 48 hours failed.',
  deferred: 'An attempt failed temporarily, and the next one follows. A recipient has one such event for each attempt.',
  spam_complaint: "The recipient reported the message as spam. `feedbackType` is the type in the provider's report.",
  unsubscribed: 'The recipient left the stream. `source` is `one_click` (the mail program) or `link` (the page).',
  cap_warning: 'Most of a monthly cap is used.',
  cap_reached: 'A monthly cap is used up. Further sends are refused with 429 `cap_reached` until `periodEnd`.',
  inbound:
    'An inbound stream received a mail. This is the form `reference`; the form `full` has the parsed mail as well.',
}
const EVENT_DETAILS: Readonly<Record<string, object>> = {
  bounced: {
    details: {
      code: 550,
      response: '550 5.1.1 No such user',
      classification: 'InvalidRecipient',
      hard: true,
      expired: false,
    },
  },
  deferred: { details: { code: 451, response: '451 4.7.1 Try again later' } },
  spam_complaint: { details: { feedbackType: 'abuse' } },
  cap_warning: {
    cap: 10_000,
    used: 8_000,
    periodStart: '2026-11-01T00:00:00.000Z',
    periodEnd: '2026-12-01T00:00:00.000Z',
  },
  cap_reached: {
    cap: 10_000,
    used: 10_000,
    periodStart: '2026-11-01T00:00:00.000Z',
    periodEnd: '2026-12-01T00:00:00.000Z',
  },
}

/** Documents that are generated as a whole. */
const FILES: Record<string, string> = {
  'docs/reference/api.md': apiText(),
  'docs/reference/cli.md': cliText(),
  'docs/guides/webhook-events.md': eventsText(),
  ...Object.fromEntries(
    Object.entries(makeDeclarations(JSON.parse(JSON.stringify(makeOpenapi(Object.values(ROUTES), ''))))).map(
      ([name, text]) => [`src/client/shapes/${name}.ts`, text],
    ),
  ),
}

function apiText(): string {
  const [open, operator] = (['public', 'operator'] as const).map((listener) => {
    const routes = Object.values<Route>(ROUTES).filter((route) => route.listener === listener)
    const port = listener === 'public' ? 8080 : 8081
    const document = makeOpenapi(routes, `http://127.0.0.1:${port}`, listener)
    return { table: tableOf(['Route', 'Key', 'Success'], routes.map(routeRow)), text: makeReference(document) }
  })
  const refusals = REFUSALS.filter(({ code }) => COMMON.includes(code))
  return `# The API

This page lists every route with its fields, an example and its refusals. Programs can read the same
from \`GET /v1/openapi.json\`, and from \`GET /v1/operator/openapi.json\` on the operator listener.

Authenticate with a bearer key. A server key (\`sk_\`, \`sk_test_\`) sends mail and reads its server, an
account key (\`ak_\`) manages the account, and an operator key (\`ok_\`) manages the installation. Every
response has a \`Request-Id\`. Times are ISO 8601 in UTC. Lists start with the newest entry. To get the
next page, pass \`next\` as \`after\`.

A refusal is \`{"error": "<code>", "message": "<sentence>"}\`; some codes have additional fields. Every
route can answer with these:

${tableOf(
  ['Status', 'Code', 'Means'],
  refusals.map(({ status, code, message }) => [String(status), `\`${code}\``, message]),
)}

${open?.table}

${open?.text}

## For the operator

On \`OPERATOR_PORT\`, with an operator key. Keep it off the public network.

${operator?.table}

${operator?.text}
`
}

function cliText(): string {
  const leaves = (command: Command, path: readonly string[]): string[] =>
    command.commands.flatMap((one) => {
      const name = [...path, one.name()]
      one.configureHelp({ helpWidth: HELP_WIDTH, showGlobalOptions: false })
      const own = `## ${name.join(' ')}\n\n\`\`\`text\n${one.helpInformation().trim()}\n\`\`\``
      return one.commands.length === 0 ? [own] : [own, ...leaves(one, name)]
    })
  return `# The command line

This page lists every command of \`sendwright\` with its options.

Run \`./sendwright <command>\` from any directory, or \`npx sendwright\` in the repository. Every command
takes \`--json\`.

- **Address and keys.** Commands that call the service read its address and their key from
  \`data/first-run.json\` of the current directory or of the installation. If a command needs a server
  key, it uses that of the test server, or with \`--live\` that of the live server.
- **Audit log.** \`--note\` of a command that changes something is recorded in the audit log.
- **Without the service.** \`operator-key\` and \`repair\` do not call the service. They need its settings:
  \`DATA_DIR\`, or \`REDIS_URL\` and \`SECRET_KEY\`.
- **Output.** On a terminal, lists have colours (\`NO_COLOR\` removes them), short times and fitted columns.
  Piped output is complete and plain.

Exit codes: 0 success, 1 refused or failed, 2 wrong usage.

${leaves(
  makeProgram(() => undefined),
  ['sendwright'],
).join('\n\n')}
`
}

function eventsText(): string {
  const events = Object.entries(EVENT_BODIES).map(([name, schema]) => {
    const example = makeExample(schema) as Record<string, unknown>
    const body = { ...example, ...EVENT_DETAILS[name] }
    return `## ${name}\n\n${EVENT_MEANINGS[name as EventName]}\n\n\`\`\`json\n${JSON.stringify(body, null, 2)}\n\`\`\``
  })
  return `# Webhook events

This page lists every event with the body that a [webhook](webhooks.md) receives.

Message events share these fields: \`id\` is the same on every attempt of one delivery and \`attempt\` counts
them. \`messageId\` and \`recipient\` name the message, \`occurredAt\` the time of the event. \`tag\` and
\`metadata\` are those of the message, and \`test\` is true on test servers.

${events.join('\n\n')}

Continue with [Suppressions and bounces](suppressions.md).
`
}

function settingRow(setting: Setting): string[] {
  const value = setting.default === null ? (setting.fallback ?? '') : `\`${setting.default}\``
  return [`\`${setting.name}\``, value, setting.meaning]
}

function routeRow({ method, path, keys, success }: Route): string[] {
  const names = { S: 'server', A: 'account', O: 'operator' }
  return [`\`${method} ${path}\``, keys.map((kind) => names[kind]).join(', ') || 'none', String(success.status)]
}

function tableOf(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function markersOf(name: string): [begin: string, end: string] {
  return [`<!-- ${name}:begin -->\n`, `\n<!-- ${name}:end -->`]
}

/** What stands between a part's markers; null when they are missing or stand twice. */
function partOf(document: string, name: string): string | null {
  const [begin, end] = markersOf(name)
  const [, after, again] = document.split(begin)
  return after === undefined || again !== undefined || !after.includes(end) ? null : (after.split(end)[0] ?? null)
}

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

if (process.argv.includes('--write')) {
  for (const [name, { file, text }] of Object.entries(PARTS)) {
    const [begin, end] = markersOf(name)
    const document = read(file)
    writeFileSync(
      join(ROOT, file),
      document.replace(begin + (partOf(document, name) ?? '') + end, () => begin + text + end),
    )
  }
  for (const [file, text] of Object.entries(FILES)) writeFileSync(join(ROOT, file), text)
}

const readme = read('README.md')
const documents = DOCUMENTS.map(read).join('\n')

for (const [name, { file, text }] of Object.entries(PARTS)) {
  t.test(`contract: the table "${name}" of ${file} equals schemas/`, async (t) => {
    t.equal(partOf(read(file), name), text)
  })
}

for (const [file, text] of Object.entries(FILES)) {
  t.test(`contract: ${file} is what schemas/ and the commands say (written with --write)`, async (t) => {
    t.equal(read(file), text)
  })
}

t.test('contract: the README is short', async (t) => {
  t.ok(readme.split('\n').length <= README_LINES_MAX + 1)
})

t.test('contract: the comparison sees a missing and a surplus row', async (t) => {
  const [begin, end] = markersOf('settings')
  const rows = (PARTS.settings?.text ?? '').split('\n')
  t.not(partOf(begin + rows.slice(0, -1).join('\n') + end, 'settings'), PARTS.settings?.text)
  t.not(partOf(begin + [...rows, '| `MORE` | | |'].join('\n') + end, 'settings'), PARTS.settings?.text)
  t.equal(partOf('no markers', 'settings'), null)
})

t.test('contract: every variable of the README and of docs/ is one of schemas/config.ts', async (t) => {
  const known = new Set<string>([
    ...[...SETTINGS, ...CLIENT_SETTINGS].map(({ name }) => name),
    ...NAMES_OF_NODE,
    ...NAMES_OF_CLIENTS,
  ])
  const named = [...documents.matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`/g)].map(([, name]) => name ?? '')
  t.ok(named.length > 10)
  t.same(
    named.filter((name) => !known.has(name)),
    [],
  )
})

t.test('contract: a setting has a sentence, and words for an absent default', async (t) => {
  for (const setting of [...SETTINGS, ...CLIENT_SETTINGS] as Setting[]) {
    t.match(setting.meaning, /^[A-Z`].*\.$/s, setting.name)
    t.equal(setting.fallback !== undefined, setting.default === null, setting.name)
  }
  t.equal(new Set(SETTINGS.map(({ name }) => name)).size, SETTINGS.length)
})

t.test('contract: the Procfile sets only what schemas/config.ts knows, and the threads of libuv', async (t) => {
  const known = new Set<string>([...SETTINGS.map(({ name }) => name), 'UV_THREADPOOL_SIZE'])
  const lines = readFileSync(join(ROOT, 'Procfile'), 'utf8').trim().split('\n')
  const names = lines.flatMap((line) => [...line.matchAll(/(?:^\w+:|\s)\s*([A-Z_]+)=/g)].map(([, name]) => name ?? ''))
  t.ok(names.includes('REDIS_URL') && names.includes('ROLES') && names.includes('OPERATOR_PORT'))
  t.same(
    names.filter((name) => !known.has(name)),
    [],
  )
  const starts = [...lines, readFileSync(join(ROOT, 'sendwright'), 'utf8')].join('\n').match(/.*exec node --max.*/g)
  t.equal(starts?.length, 6)
  t.ok(starts?.every((line) => /UV_THREADPOOL_SIZE=\$.UV_THREADPOOL_SIZE:-8. exec node/.test(line)))
})

t.test('contract: the changelog has a section for what comes next', async (t) => {
  t.match(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), /^## Unreleased$/m)
})

t.test(
  'contract: docs/operate/troubleshooting.md has every sentence with which a start or a command ends, and no other',
  async (t) => {
    const text = readFileSync(join(ROOT, 'docs/operate/troubleshooting.md'), 'utf8')
    const told = [...text.matchAll(/^\| `(.+?)` \| (.+) \|$/gm)].map(([, sentence = '']) => sentence)
    t.ok(told.length > 100)
    const said = errorSentences()
    t.same(
      said.filter((one) => !told.includes(one)),
      [],
      'said, and not in the document: add a row with what mends it',
    )
    t.same(
      told.filter((one) => !said.includes(one)),
      [],
      'in the document, and nobody says it',
    )
    const hole = '$' + '{what({})}'
    const source = `throw new Oops(\`No ${hole} in \` +\n  'the whole house: mend it')\nnew Oops(error.message)`
    t.same(sentencesIn(source, /new Oops\(/g), ['No … in the whole house'])
  },
)
