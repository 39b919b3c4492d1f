/**
 * pack - `npm run pack:client` makes the archive of the client alone, `sendwright-client-<version>.tgz`, in
 * build/pack/, or in a given folder (`npm run pack:client -- /srv/archives`). Prints its path last.
 *
 * The archive is a package with the same name, `sendwright`, with the entries of the client and without the service,
 * which an application installs without a dependency.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeClientPackage } from './make.mjs'

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const README = `# Sendwright client

The TypeScript client of Sendwright, a transactional email service that you run yourself.

\`\`\`js
import { Sendwright } from 'sendwright/client'

const sendwright = new Sendwright({ key: process.env.SENDWRIGHT_TOKEN, url: 'https://mail.example.com' })
await sendwright.send({ from: 'you@example.com', to: ['ada@example.org'], subject: 'Hello', text: 'It works.' })
\`\`\`

The page "TypeScript client" of the documentation, which the service serves under /docs, has the rest.
`

const { name, version, license, type, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const folder = resolve(process.argv[2] ?? join(ROOT, 'build', 'pack'))
mkdirSync(folder, { recursive: true })
const stage = mkdtempSync(join(folder, '.client-'))
try {
  await makeClientPackage(ROOT, join(stage, 'build', 'client'))
  copyFileSync(join(ROOT, 'LICENSE'), join(stage, 'LICENSE'))
  writeFileSync(join(stage, 'README.md'), README)
  const description = 'The TypeScript client of Sendwright'
  const manifest = { name, version, description, license, type, exports, engines: { node: '>=18' }, sideEffects: false }
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  const options = { cwd: stage, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }
  const packed = execFileSync('npm', ['pack', '--silent', '--ignore-scripts'], options).trim().split('\n').at(-1)
  const archive = join(folder, `${name}-client-${version}.tgz`)
  renameSync(join(stage, packed), archive)
  console.log(archive)
} finally {
  rmSync(stage, { recursive: true, force: true })
}
