/**
 * pack - `npm run pack` makes the archive that a server installs from, `sendwright-<version>.tgz`, in build/pack/, or
 * in a given folder (`npm run pack -- /srv/archives`), and its digest next to it. Prints its path last.
 *
 * The archive has the compiled service, the dashboard's pages, the client, the documents with the site built from
 * them, the other entries of `files` in package.json, and the packages that package-lock.json of this checkout
 * installs without tools, so a server downloads nothing. Native modules are those of Linux on x64 and arm64.
 * THIRD-PARTY-NOTICES, sbom.cdx.json and SHA256SUMS describe the content.
 *
 * `npm install` goes before. Nothing is touched but the folder of the archive.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeClientPackage } from '../client/make.mjs'
import { bundle } from './bundle.mjs'
import { copyModules } from './pack/modules.mjs'
import { noticesOf } from './pack/notices.mjs'

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** The compiled parts are those of the service, without benchmarks and tests. */
const COMPILED = ['schemas', 'cluster', 'src']
/** Scripts of package.json that need only installed packages. */
const SCRIPTS = ['start', 'cluster']
/** The name of the archive's folder, as in archives of npm. */
const TOP = 'package'

const manifest = readJson('package.json')
const folder = resolve(process.argv[2] ?? join(ROOT, 'build', 'pack'))
mkdirSync(folder, { recursive: true })
const above = mkdtempSync(join(folder, '.stage-'))
const stage = join(above, TOP)
try {
  mkdirSync(stage)
  copyNamed()
  compile()
  const bundled = await bundle(ROOT, join(stage, 'build', 'dashboard'))
  await makeClientPackage(ROOT, join(stage, 'build', 'client'))
  run('npm', ['run', '--silent', 'docs', '--', '--outDir', join(stage, 'build', 'docs')], ROOT)
  const lock = lockOf(readJson('package-lock.json'))
  writeJson('package.json', manifestOf(manifest))
  writeJson('npm-shrinkwrap.json', lock)
  const installed = Object.entries(lock.packages).filter(([path]) => path !== '')
  copyModules(ROOT, stage, installed)
  const paths = installed.map(([path]) => path)
  writeFileSync(join(stage, 'THIRD-PARTY-NOTICES'), noticesOf(ROOT, paths, bundled))
  writeJson('sbom.cdx.json', listOfMaterials())
  writeFileSync(
    join(stage, 'SHA256SUMS'),
    filesIn(stage)
      .map((path) => sumOf(stage, path))
      .join(''),
  )
  const archive = `sendwright-${manifest.version}.tgz`
  run('tar', ['-czf', join(folder, archive), '-C', above, TOP], ROOT)
  writeFileSync(join(folder, `${archive}.sha256`), sumOf(folder, archive))
  console.log(join(folder, archive))
} finally {
  rmSync(above, { recursive: true, force: true })
}

/** Copies the entries of `files` that are in the checkout, without sources, which are shipped compiled. */
function copyNamed() {
  const isShipped = (path) => !/\.ts$|\.vitepress/.test(path) && !/src\/(?:dashboard\/page|service\/pack)/.test(path)
  for (const name of ['README.md', 'CHANGELOG.md', 'LICENSE', ...manifest.files.map((one) => one.replace(/\/$/, ''))])
    if (existsSync(join(ROOT, name)) && name !== 'build')
      cpSync(join(ROOT, name), join(stage, name), { recursive: true, filter: isShipped })
}

function compile() {
  const path = createRequire(import.meta.url).resolve('typescript/package.json')
  const compiler = join(dirname(path), JSON.parse(readFileSync(path, 'utf8')).bin.tsc)
  run(process.execPath, [compiler, '--project', 'tsconfig.service.json', '--outDir', join(stage, 'build')], ROOT)
  for (const name of COMPILED) if (!existsSync(join(stage, 'build', name))) throw new Error(`${name} was not compiled`)
}

/** package.json of the archive, without tools and their scripts. */
function manifestOf({ devDependencies: _tools, scripts, ...rest }) {
  return { ...rest, scripts: Object.fromEntries(SCRIPTS.map((name) => [name, scripts[name]])) }
}

/** The lock file of the archive, with the packages of the service as in the checkout. */
function lockOf({ packages, ...rest }) {
  const { '': root, ...others } = packages
  const { devDependencies: _tools, ...top } = root
  const needed = Object.entries(others).filter(([, { dev }]) => dev !== true)
  return { ...rest, packages: { '': top, ...Object.fromEntries(needed) } }
}

/** CycloneDX, as npm lists the packages of the lock file. */
function listOfMaterials() {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--omit', 'dev']
  const found = JSON.parse(run('npm', [...args, '--package-lock-only'], stage))
  // npm names it after the folder.
  found.metadata.component.name = manifest.name
  return found
}

function filesIn(place) {
  const entries = readdirSync(place, { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map(({ parentPath, name }) => relative(place, join(parentPath, name))).sort()
}

/** A line of sha256sum. */
function sumOf(place, path) {
  return `${createHash('sha256')
    .update(readFileSync(join(place, path)))
    .digest('hex')}  ${path}\n`
}

function run(command, args, cwd) {
  return execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  })
}

function readJson(name) {
  return JSON.parse(readFileSync(join(ROOT, name), 'utf8'))
}

function writeJson(name, value) {
  writeFileSync(join(stage, name), `${JSON.stringify(value, null, 2)}\n`)
}
